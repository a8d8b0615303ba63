package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu"
)

const (
	httpWait   = 10 * time.Second // to read a request
	answerWait = 20 * time.Second // to write an answer
	idleWait   = time.Minute      // between two requests of a connection
	mostHeader = 8 << 10          // bytes of a request's header
	readyWait  = 2 * time.Second  // for the servers' answers in /readyz
	readyFor   = time.Second      // how long an answer of /readyz holds: anybody may ask, and the servers are asked seldom
	stopWait   = 3 * time.Second  // for running requests at the end
)

// page is the HTTP server of a process (O4). /healthz says that it lives, /readyz that it takes
// work and reaches its servers, /metrics what it does. Anybody may ask: nothing there names a
// job, a key, a user or a host.
type page struct {
	server *http.Server
	url    string
	done   chan error
	// ready says whether the process can work; nil until there is a runtime.
	ready atomic.Pointer[func(context.Context) error]

	mu    sync.Mutex // held while the servers are asked
	asked time.Time
	last  error // their answer at that time
}

// openPage listens on addr. Without an address it returns nil; all methods accept a nil page.
func openPage(ctx context.Context, addr string, metrics http.Handler) (*page, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	p := &page{url: "http://" + l.Addr().String(), done: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", p.readyz)
	mux.Handle("GET /metrics", metrics)
	p.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: httpWait, ReadTimeout: httpWait, WriteTimeout: answerWait, IdleTimeout: idleWait, MaxHeaderBytes: mostHeader,
	}
	go func() {
		err := p.server.Serve(l)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		p.done <- err
	}()
	return p, nil
}

// URL returns the server's address, "" without one.
func (p *page) URL() string {
	if p == nil {
		return ""
	}
	return p.url
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
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	return errors.Join(p.server.Shutdown(ctx), <-p.done)
}
