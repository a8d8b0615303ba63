package console_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/console"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// site is a space in which jobs of all kinds have run, with its console.
type site struct {
	t    *testing.T
	home *world.World
	rt   *quipu.Runtime
	page *httptest.Server
}

// newSite runs a space with the handlers of testdata. Its jobs: done, which completed; failing, which
// had failed attempts and passes; broken, which failed; parked, which waits for a person; waiting, which
// waits for a signal; and nightly-1, whose topic nobody serves.
func newSite(t *testing.T) *site {
	t.Helper()
	reg := workers.New()
	workers.RegisterBuiltins(reg)
	workers.Handle(reg, "payments.charge", charge)
	workers.Handle(reg, "flaky", flaky())
	home := world.New(t, "")
	cfg := home.Config()
	cfg.Workers, cfg.Name, cfg.Build = reg, "worker-1", "test"
	cfg.Roles = []quipu.Role{quipu.RoleEngine, quipu.RoleWorkers}
	rt := home.Serve(cfg)
	w := &site{t: t, home: home, rt: rt}
	w.page = httptest.NewServer(guarded(rt,
		access.Config{Local: &access.Who{Name: "ada", Role: access.Operator}, Tokens: rt.Tokens().Who}))
	t.Cleanup(w.page.Close)
	w.deploy("order", "invoice", "nightly")
	w.start("done", map[string]any{"order": 1}, quipu.Tags{"customer:42"})
	w.start("failing", map[string]any{"order": 2, "looks": 3, "fails": 2})
	w.start("broken", map[string]any{"order": 5, "fails": 9})
	w.start("waiting", map[string]any{"order": 4, "wait": "1h"})
	_, err := rt.Start(t.Context(), "nightly", "nightly-1", nil)
	require.NoError(t, err)
	w.ends("done")
	w.ends("failing")
	w.ends("broken")
	w.cut("parked")
	w.until("waiting", func(j *view.Job) bool { return len(j.Messages) == 1 && len(j.Waits) == 1 })
	return w
}

// guarded is the console behind a guard.
func guarded(rt *quipu.Runtime, cfg access.Config) http.Handler {
	g := access.New(cfg)
	return g.Wrap(console.New(rt, console.Config{Guard: g, Build: "test", Trace: "http://127.0.0.1:16686/trace/{trace}"}))
}

func (w *site) deploy(names ...string) {
	w.t.Helper()
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		require.NoError(w.t, err)
		f, err := flow.Parse(name, source)
		require.NoError(w.t, err)
		require.NoError(w.t, w.rt.Deploy(w.t.Context(), f))
	}
}

func (w *site) start(key string, input any, opts ...quipu.StartOption) {
	w.t.Helper()
	_, err := w.rt.Start(w.t.Context(), "order", key, input, opts...)
	require.NoError(w.t, err)
}

// cut starts a job that is parked for a person.
func (w *site) cut(key string) {
	w.t.Helper()
	w.start(key, map[string]any{"order": 3, "cut": true})
	w.until(key, func(j *view.Job) bool { return len(j.DeadLetters) == 1 })
}

// patience bounds the waiting for a job.
const patience = time.Minute

func (w *site) ends(key string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	_, err := w.rt.Wait(ctx, quipu.Job{Key: key})
	if _, failed := errors.AsType[*quipu.JobError](err); !failed {
		require.NoError(w.t, err)
	}
}

func (w *site) until(key string, is func(*view.Job) bool) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		j, err := w.rt.Job(w.t.Context(), quipu.Job{Key: key})
		return err == nil && is(j)
	}, patience, 20*time.Millisecond, key)
}

func (w *site) id(key string) journal.JobID {
	w.t.Helper()
	job, err := w.rt.Find(w.t.Context(), key)
	require.NoError(w.t, err)
	return job.ID
}

// of is the page of a job.
func (w *site) of(key string) string { return "/jobs/" + w.id(key).String() }

// charge is cut off in a call outside where the input says so: nobody knows whether it was done.
func charge(ctx context.Context, in struct {
	Order int  `json:"order"`
	Cut   bool `json:"cut"`
},
) (map[string]any, error) {
	return effects.Do(ctx, "charge", func(context.Context) (map[string]any, error) {
		if in.Cut {
			return nil, errors.New("connection cut off")
		}
		return map[string]any{"receipt": fmt.Sprint("r-", in.Order)}, nil
	}, effects.Guarded)
}

// flaky fails as often as its input says, then it succeeds.
func flaky() func(context.Context, struct {
	Left  int `json:"left"`
	Fails int `json:"fails"`
}) (string, error) {
	return func(ctx context.Context, in struct {
		Left  int `json:"left"`
		Fails int `json:"fails"`
	},
	) (string, error) {
		if workers.Info(ctx).Attempt <= in.Fails {
			return "", fmt.Errorf("attempt %d <b>failed</b>", workers.Info(ctx).Attempt)
		}
		return "looked", nil
	}
}

// answer is a response with its body.
type answer struct {
	*http.Response
	Body string
}

func (w *site) do(req *http.Request) answer {
	w.t.Helper()
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	r, err := client.Do(req)
	require.NoError(w.t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(w.t, err)
	require.NoError(w.t, r.Body.Close())
	return answer{r, string(body)}
}

func (w *site) request(method, page string, form url.Values) *http.Request {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.page.URL+page, strings.NewReader(form.Encode()))
	require.NoError(w.t, err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", w.page.URL)
	}
	return req
}

// get reads a page that is there.
func (w *site) get(page string) string {
	w.t.Helper()
	a := w.do(w.request(http.MethodGet, page, nil))
	require.Equal(w.t, http.StatusOK, a.StatusCode, "%s: %s", page, a.Body)
	return a.Body
}

// post sends a form as a page of the console does.
func (w *site) post(page string, form url.Values) answer {
	w.t.Helper()
	return w.do(w.request(http.MethodPost, page, form))
}
