package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/serve"
)

const (
	readyWait = 2 * time.Second // for the servers' answers in /readyz
	// how long an answer of /readyz holds: anybody may ask, and the servers are asked seldom
	readyFor = time.Second
)

// page is the HTTP server of a process (O4). /healthz says that it lives, /readyz that it takes
// work and reaches its servers, /metrics what it does. Anybody may ask: nothing there names a
// job, a key, a user or a host.
type page struct {
	server *serve.Server
	// ready says whether the process can work; nil until there is a runtime.
	ready atomic.Pointer[func(context.Context) error]

	mu    sync.Mutex // held while the servers are asked
	asked time.Time
	last  error // their answer at that time
}

// openPage listens on addr. Without an address it returns nil; all methods accept a nil page.
func openPage(ctx context.Context, addr string, metrics http.Handler, logger *slog.Logger) (*page, error) {
	if addr == "" {
		return nil, nil
	}
	p := &page{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", p.readyz)
	mux.Handle("GET /metrics", metrics)
	s, err := serve.Listen(ctx, addr, nil, mux, logger)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	p.server = s
	return p, nil
}

// URL returns the server's address, "" without one.
func (p *page) URL() string {
	if p == nil {
		return ""
	}
	return p.server.URL()
}

// asks sets the check for /readyz: quipu.Runtime.Check.
func (p *page) asks(check func(context.Context) error) {
	if p != nil {
		p.ready.Store(&check)
	}
}

func (p *page) readyz(w http.ResponseWriter, r *http.Request) {
	check := p.ready.Load()
	if check == nil {
		say(w, http.StatusServiceUnavailable, "the process takes no work: it is starting")
		return
	}
	switch err := p.look(r.Context(), *check); {
	case errors.Is(err, quipu.ErrAnotherDatabase):
		say(w, http.StatusServiceUnavailable, "the database is another one than the space's: see quipu recover")
	case errors.Is(err, quipu.ErrNotReady):
		say(w, http.StatusServiceUnavailable, outermost(err))
	case err != nil:
		say(w, http.StatusServiceUnavailable, "the database does not answer")
	default:
		say(w, http.StatusOK, "ready")
	}
}

// outermost is the text of an ErrNotReady without the cause behind it, which may name hosts and users.
func outermost(err error) string {
	if all, is := err.(interface{ Unwrap() []error }); is {
		cause := all.Unwrap()
		return strings.TrimSuffix(err.Error(), ": "+cause[len(cause)-1].Error())
	}
	return err.Error()
}

// look asks the servers, at most once in readyFor.
func (p *page) look(ctx context.Context, check func(context.Context) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) >= readyFor {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWait) // others take the answer, too
		defer cancel()
		p.last = check(ctx)
		p.asked = time.Now()
	}
	return p.last
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // the caller may have gone
}

func (p *page) close() error {
	if p == nil {
		return nil
	}
	return p.server.Close()
}
