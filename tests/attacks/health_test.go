package attacks

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/console"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

const heldFlow = `
flow: held
version: "1"
activities:
  t: {type: trigger}
  a: {type: worker, topic: held}
transitions: {t: [a]}
`

// saidWithin is how soon a trouble is to be said everywhere; a test on a busy machine waits longer.
const saidWithin = 5 * time.Second

// What keeps a process from its work is said within seconds, and alike, by its readiness, by the
// reasons of a job, by the list that `quipu top` prints, and by the console. When it is over, nothing
// of it is said any more, and the job goes on.
func TestTroublesAreSaidAlike(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		says, hides string
		make        func(w *ward)
		mend        func(w *ward)
	}{
		"NATS is away": {
			says: "NATS does not answer",
			make: func(w *ward) { require.NoError(w.t, w.NATS.Shutdown()) },
			mend: func(w *ward) { require.NoError(w.t, w.NATS.Restart(w.t.Context())) },
		},
		"new connections may not write": {
			says: "the database takes no writes from this login",
			make: func(w *ward) { w.database("SET default_transaction_read_only = on") },
			mend: func(w *ward) { w.database("RESET default_transaction_read_only") },
		},
		"a crash would lose commits": {
			says: "synchronous_commit is off",
			make: func(w *ward) {
				w.database("SET synchronous_commit = off")
				require.Eventually(w.t, func() bool {
					_, err := w.rt.Start(w.t.Context(), "held", "refused", nil)
					return err != nil
				}, saidWithin, 50*time.Millisecond, "nothing is acknowledged any more")
				_, err := w.rt.Start(w.t.Context(), "held", "refused too", nil)
				require.ErrorIs(w.t, err, quipu.ErrPreflight)
				require.ErrorIs(w.t, err, quipu.ErrUnavailable)
			},
			mend: func(w *ward) { w.database("RESET synchronous_commit") },
		},
		"the disk of the database is full": {
			says: "nothing that the process decides can be committed", hides: "no space left",
			make: func(w *ward) {
				w.must("CREATE FUNCTION quipu_shop.disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$")
				w.must("CREATE TRIGGER disk BEFORE INSERT ON quipu_shop.entries FOR EACH STATEMENT EXECUTE FUNCTION quipu_shop.disk()")
				close(w.free) // its response cannot be committed
			},
			mend: func(w *ward) { w.must("DROP FUNCTION quipu_shop.disk CASCADE") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWard(t)
			w.soon("is well", func() string { return w.unsaid("") })
			x.make(w)
			w.soon("is said", func() string { return w.unsaid(x.says) })
			if x.hides != "" { // what a probe is told is the text without the last error behind it
				//nolint:errorlint // as the probe reads it
				all, is := w.rt.Check(t.Context()).(interface{ Unwrap() []error })
				require.True(t, is)
				require.ErrorContains(t, all.Unwrap()[len(all.Unwrap())-1], x.hides)
			}
			x.mend(w)
			w.soon("is over", func() string { return w.unsaid("") })
			select {
			case <-w.free:
			default:
				close(w.free)
			}
			_, err := w.rt.Wait(t.Context(), w.job)
			require.NoError(t, err)
		})
	}
}

// ward is a space with one process and one open job, of which somebody looks after the health.
type ward struct {
	*target
	rt   *quipu.Runtime
	page http.Handler
	job  quipu.Job
	free chan struct{} // closed: the handler of the job ends
}

func newWard(t *testing.T) *ward {
	t.Helper()
	w := &ward{target: newTarget(t), free: make(chan struct{})}
	reg := workers.New()
	workers.Handle(reg, "held", func(ctx context.Context, _ any) (any, error) {
		select {
		case <-w.free:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	w.rt = w.open(reg)
	w.Run(w.rt)
	w.Deploy(w.rt, heldFlow)
	var err error
	w.job, err = w.rt.Start(t.Context(), "held", "one", nil)
	require.NoError(t, err)
	guard := access.New(access.Config{Local: &access.Who{Name: "ann", Role: access.Viewer}})
	w.page = guard.Wrap(console.New(w.rt, console.Config{Space: "shop", Guard: guard}))
	return w
}

// must runs a statement as the owner of the database.
func (w *ward) must(statement string) {
	w.t.Helper()
	cfg, err := pgx.ParseConfig(w.Postgres)
	require.NoError(w.t, err)
	cfg.RuntimeParams["default_transaction_read_only"] = "off"
	c, err := pgx.ConnectConfig(w.t.Context(), cfg)
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, c.Close(context.WithoutCancel(w.t.Context()))) }()
	_, err = c.Exec(w.t.Context(), statement)
	require.NoError(w.t, err)
}

// database changes the settings that new connections to the database get.
func (w *ward) database(change string) {
	w.t.Helper()
	name := w.name()
	w.must("ALTER DATABASE " + pgx.Identifier{name}.Sanitize() + " " + change)
}

func (w *ward) name() string {
	w.t.Helper()
	cfg, err := pgx.ParseConfig(w.Postgres)
	require.NoError(w.t, err)
	return cfg.Database
}

// soon waits until nothing is missing.
func (w *ward) soon(what string, missing func() string) {
	w.t.Helper()
	began, last := time.Now(), ""
	for time.Since(began) < 4*saidWithin { // this machine has other work
		if last = missing(); last == "" {
			w.t.Logf("it %s after %s", what, time.Since(began).Round(100*time.Millisecond))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.Empty(w.t, last, what)
}

// unsaid tells who does not say the text; with an empty text, who says that anything stops the space.
// "": all agree.
func (w *ward) unsaid(text string) string {
	w.t.Helper()
	ctx := w.t.Context()
	differs := func(said string) bool { return text != "" && !strings.Contains(said, text) || text == "" && said != "" }
	said := ""
	if err := w.rt.Check(ctx); err != nil {
		said = err.Error()
	}
	if differs(said) {
		return "readyz: " + said
	}
	j, err := w.rt.Inspect(ctx, w.job, view.Want{Reasons: true})
	require.NoError(w.t, err)
	said = ""
	for _, r := range j.Reasons {
		if r.Kind == string(explain.KindSpace) || r.Kind == string(explain.KindNobody) {
			said += r.Text + "\n"
		}
	}
	if differs(said) {
		return "why: " + said
	}
	all, err := below.Reader(w.rt).Wrong(ctx, &health.Sight{Open: true})
	require.NoError(w.t, err)
	said = ""
	for i := range all {
		if all[i].Stops {
			said += all[i].Text + "\n"
		}
	}
	if differs(said) {
		return "top: " + said
	}
	for _, address := range []string{"/jobs", "/processes", "/jobs/" + w.job.ID.String()} {
		b := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8000"+address, nil)
		r.RemoteAddr = "127.0.0.1:1"
		w.page.ServeHTTP(b, r)
		require.Equal(w.t, http.StatusOK, b.Code, address)
		_, said, _ = strings.Cut(b.Body.String(), `<p class="bad wrong"`)
		if differs(said) {
			return address + ": " + said[:min(len(said), 200)]
		}
	}
	return ""
}
