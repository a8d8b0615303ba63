package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu"
)

const (
	httpWait  = 10 * time.Second // to read a request
	readyWait = 2 * time.Second  // for the database's answer in /readyz
	stopWait  = 3 * time.Second  // for running requests at the end
)

// page is the HTTP server of a process. /healthz says that it lives, /readyz that it takes work
// and reaches the database.
type page struct {
	server *http.Server
	url    string
	done   chan error
	// ready says whether the process can work; nil until there is a runtime.
	ready atomic.Pointer[func(context.Context) error]
}

// openPage listens on addr. Without an address it returns nil; all methods accept a nil page.
func openPage(ctx context.Context, addr string, counts http.Handler) (*page, error) {
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
	mux.Handle("GET /debug/counters", counts)
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: httpWait, ReadTimeout: httpWait}
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
	ctx, cancel := context.WithTimeout(r.Context(), readyWait)
	defer cancel()
	switch err := (*check)(ctx); {
	case errors.Is(err, quipu.ErrNotReady):
		say(w, http.StatusServiceUnavailable, err.Error())
	case err != nil:
		say(w, http.StatusServiceUnavailable, "the database does not answer") // its error may name users and hosts
	default:
		say(w, http.StatusOK, "ready")
	}
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
