package attacks

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/quipu-journal/quipu"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

const secret = "sk_live_4eC39HqLyjWDarjtT1"

// trail is everything that leaves a process except for the database: it is a log, an
// observer, and listens on every subject of NATS.
type trail struct {
	observer.Nop
	devtest.Log
}

// newTrail keeps more than a test says, so that nothing escapes it.
func newTrail() *trail { return &trail{Log: devtest.Log{Keep: 64 << 20}} }

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func (r *trail) Trace(context.Context) string { return parent }

func (r *trail) Told(m observer.Message, spans ...observer.Span) {
	fmt.Fprintf(r, "span %+v %+v\n", m, spans)
}

func (r *trail) Traces() bool { return true }

func (r *trail) Sampled(journal.JobID, string) bool { return true }

func (r *trail) Trees(_ context.Context, trees ...*view.Tree) error {
	for _, x := range trees {
		whole, err := json.Marshal(x)
		fmt.Fprintf(r, "tree %s %v\n", whole, err)
	}
	return nil
}

func (r *trail) Attempt(
	ctx context.Context, _ string, s observer.Subject,
) (context.Context, func(error, []observer.Span)) {
	return ctx, func(err error, effects []observer.Span) { fmt.Fprintf(r, "attempt %+v %v %+v\n", s, err, effects) }
}

func (r *trail) Count(metric string, n int64, attributes ...string) {
	fmt.Fprintln(r, metric, n, attributes)
}

// listen keeps every message of the server, headers too.
func (r *trail) listen(t *testing.T, url string) {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe(">", func(m *nats.Msg) { fmt.Fprintf(r, "message %s %v %s\n", m.Subject, m.Header, m.Data) })
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
}

// tables is the text of every row of the space's schema.
func (g *target) tables() string {
	g.t.Helper()
	db := g.admin()
	defer db.Close(context.Background())
	rows, err := db.Query(g.t.Context(), "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables WHERE table_schema = 'quipu_shop' AND table_type = 'BASE TABLE'")
	require.NoError(g.t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(g.t, err)
	require.NotEmpty(g.t, names)
	var all strings.Builder
	for _, name := range names {
		rows, err := db.Query(g.t.Context(), "SELECT x::text FROM "+name+" x") // the name is quoted by format
		require.NoError(g.t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(g.t, err)
		fmt.Fprintln(&all, name, lines)
	}
	return all.String()
}

// absent says that none of the texts has what is to be hidden: as it is, in hex, as Postgres writes
// bytes, or in base64, at any offset.
func absent(t *testing.T, hidden string, texts ...string) {
	t.Helper()
	forms := []string{hidden, hex.EncodeToString([]byte(hidden))}
	for skip := range 3 {
		coded := base64.StdEncoding.EncodeToString([]byte(hidden)[skip : skip+(len(hidden)-skip)/3*3])
		forms = append(forms, coded)
	}
	for _, text := range texts {
		for _, form := range forms {
			if at := strings.Index(text, form); at >= 0 {
				require.Fail(t, "it is there", "%s", text[max(at-300, 0):min(at+100, len(text))])
			}
		}
	}
}

// secretive opens an engine and a worker of their own, so that everything between the two
// is on NATS, and leaves a trail. The secret belongs to 127.0.0.1.
func secretive(t *testing.T, g *target, kept *trail) *quipu.Runtime {
	t.Helper()
	reg := workers.New()
	workers.Builtins{Secrets: func(name string) (workers.Secret, error) {
		if name != "STRIPE" {
			return workers.Secret{}, errors.New("this worker does not have it")
		}
		return workers.Secret{Value: secret, Hosts: []string{"127.0.0.1"}}, nil
	}}.Register(reg)
	kept.listen(t, g.NATS.URL())
	watched := func(c *quipu.Config) {
		c.Logger, c.Observer = slog.New(slog.NewTextHandler(kept, &slog.HandlerOptions{Level: slog.LevelDebug})), kept
	}
	engine := g.open(nil, watched, func(c *quipu.Config) { c.Roles = []quipu.Role{quipu.RoleEngine} })
	g.Deploy(engine, callFlow)
	g.Run(engine)
	g.Run(g.open(reg, watched, func(c *quipu.Config) { c.Roles = []quipu.Role{quipu.RoleWorkers} }))
	return engine
}

// secretFlow is how a flow file names a secret.
const secretFlow = `flow: pay
version: "1"
input: {type: object, required: [url]}
activities:
  start: {type: trigger}
  pay:
    type: worker
    topic: http
    input:
      method: POST
      url: "${ start.output.url }/charges/$${secret:STRIPE}?key=$${secret:STRIPE}"
      headers: {Authorization: "Bearer $${secret:STRIPE}"}
      body: {note: "$${secret:STRIPE}"}
output: {got: "${ pay.output }"}
transitions: {start: [pay]}
`

// S14: the receiver of a secret sends it back in every way it can: in the body, headers, a
// redirect, an answer that is none. The call works, and neither a row, a message, a span
// nor the log has the secret.
func TestS14AReceiverSendsTheSecretBack(t *testing.T) {
	t.Parallel()
	g, kept := newTarget(t), newTrail()
	rt := secretive(t, g, kept)
	g.Deploy(rt, secretFlow)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer "+secret || q.URL.Query().Get("key") != secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", q.RequestURI)
		switch mode := q.URL.Query().Get("as"); mode {
		case "junk":
			if c, buf, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = buf.WriteString("HTTP/9 " + secret + "\r\n\r\n")
				_ = buf.Flush()
				_ = c.Close()
			}
			return
		case "scheme":
			w.Header()["Location"] = []string{secret[:8] + secret + "://x"}
			w.WriteHeader(http.StatusFound)
		case "location":
			w.Header()["Location"] = []string{"http://" + secret + ".invalid:port/"}
			w.WriteHeader(http.StatusFound)
		case "refusal":
			w.WriteHeader(http.StatusPaymentRequired)
		}
		body, _ := io.ReadAll(q.Body)
		_, _ = fmt.Fprintf(w, `{"uri":%q,"headers":%q,"body":%q}`, q.RequestURI, fmt.Sprint(q.Header), body)
	}))
	t.Cleanup(s.Close)
	out, failed := ended(t, rt, "pay", "pays", map[string]string{"url": s.URL})
	require.Nil(t, failed)
	require.Contains(t, string(out), `/charges/${secret:STRIPE}?key=${secret:STRIPE}`)
	require.Contains(t, string(out), "Bearer ${secret:STRIPE}")
	absent(t, secret, string(out))
	for _, as := range []string{"junk", "scheme", "location", "refusal"} {
		for _, method := range []string{"GET", "POST"} {
			_, failed := ended(t, rt, "call", as+method, map[string]any{
				"method": method, "url": s.URL + "/?as=" + as + "&key=${secret:STRIPE}", "headers": map[string]string{"Authorization": "Bearer ${secret:STRIPE}"},
			})
			require.NotNil(t, failed, as)
			require.NotEqual(t, http.StatusUnauthorized, failed.Code)
			absent(t, secret, fmt.Sprintf("%v %+v", failed, failed.Cause))
		}
	}
	said := kept.String()
	for _, part := range []string{"attempt ", "span ", "message ", "level="} {
		require.Contains(t, said, part, "the trail is kept")
	}
	rows := g.tables()
	absent(t, secret, said, rows)
	require.True(t, strings.Contains(rows, hex.EncodeToString([]byte("${secret:STRIPE}"))), "rows have the name")
}

// S14: whoever chooses a part of a URL writes the name of a secret into it, to have it sent
// to himself; or redirects a call that has it. He gets nothing.
func TestS14AnInputNamesASecret(t *testing.T) {
	t.Parallel()
	g, kept := newTarget(t), newTrail()
	rt := secretive(t, g, kept)
	got := newTrail()
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		fmt.Fprintf(got, "%s %v\n", q.RequestURI, q.Header)
	}))
	t.Cleanup(thief.Close)
	away := strings.Replace(thief.URL, "127.0.0.1", "localhost", 1)
	for i, url := range []string{
		away + "/${secret:STRIPE}",
		strings.Replace(away, "http://", "http://a:${secret:STRIPE}@", 1),
		strings.Replace(away, "http://", "http://127.0.0.1:${secret:STRIPE}@", 1),
	} {
		_, failed := ended(t, rt, "call", fmt.Sprint("stolen", i), map[string]string{"url": url})
		require.NotNil(t, failed)
		require.Equal(t, wire.ClassSecret, failed.Cause.Class)
		require.Contains(t, failed.Cause.Message, "secret STRIPE is not sent to localhost")
	}
	require.Empty(t, got.String())
	friend := httptest.NewServer(http.RedirectHandler(away+"/x", http.StatusFound))
	t.Cleanup(friend.Close)
	_, failed := ended(t, rt, "call", "redirect", map[string]any{
		"url": friend.URL + "/?key=${secret:STRIPE}", "headers": map[string]string{"X-Api-Key": "${secret:STRIPE}", "Authorization": "${secret:STRIPE}"},
	})
	require.Nil(t, failed)
	require.Contains(t, got.String(), "/x", "the redirect was followed")
	absent(t, secret, got.String(), kept.String(), g.tables())
}
