package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/quipu-journal/quipu/api/access"
)

// stopWait bounds the end of running requests when the server ends; streams end at once.
const stopWait = 2 * time.Second

// Server is an HTTP server that listens.
type Server struct {
	server *http.Server
	scheme string
	addr   net.Addr
	done   chan error
	end    context.CancelCauseFunc
}

// Listen serves h on addr, HOST:PORT; port 0 is any free one. With a configuration it speaks TLS.
// The logger gets what fails below the handlers.
func Listen(
	ctx context.Context, addr string, secure *tls.Config, h http.Handler, logger *slog.Logger,
) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &Server{scheme: "http://", addr: l.Addr(), done: make(chan error, 1), end: end, server: access.Server(h, logger)}
	s.server.BaseContext = func(net.Listener) context.Context { return ctx }
	serve := func() error { return s.server.Serve(l) }
	if secure != nil {
		s.scheme, s.server.TLSConfig = "https://", secure
		serve = func() error { return s.server.ServeTLS(l, "", "") }
	}
	go func() {
		err := serve()
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.done <- err
	}()
	return s, nil
}

// URL is the address of the server.
func (s *Server) URL() string { return s.scheme + s.addr.String() }

// Done gives the error with which the server has ended by itself.
func (s *Server) Done() <-chan error { return s.done }

// Close ends the server: running requests are told at once, and have a moment to end.
func (s *Server) Close() error {
	s.end(access.ErrStopped)
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return errors.Join(s.server.Close(), <-s.done)
	}
	return <-s.done
}
