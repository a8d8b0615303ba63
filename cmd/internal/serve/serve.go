package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	readWait = 10 * time.Second // to read a request
	stopWait = 2 * time.Second  // for running requests at the end; streams end at once
)

// Server is an HTTP server that listens.
type Server struct {
	server *http.Server
	addr   net.Addr
	done   chan error
	end    context.CancelFunc
}

// Loopback serves h on addr, HOST:PORT; port 0 is any free one. HOST is this machine: whoever
// reaches another address would have no right to ask. An empty HOST is 127.0.0.1.
func Loopback(ctx context.Context, addr string, h http.Handler) (*Server, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%w: use an address such as 127.0.0.1:8400", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%.80q is not an address of this machine alone, and there is no login: use 127.0.0.1:PORT", addr)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{addr: l.Addr(), done: make(chan error, 1), end: end, server: &http.Server{
		Handler: h, ReadHeaderTimeout: readWait, ReadTimeout: readWait, BaseContext: func(net.Listener) context.Context { return ctx },
	}}
	go func() {
		err := s.server.Serve(l)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.done <- err
	}()
	return s, nil
}

// URL is the address of the server.
func (s *Server) URL() string { return "http://" + s.addr.String() }

// Done gives the error with which the server has ended by itself.
func (s *Server) Done() <-chan error { return s.done }

// Close ends the server: running requests are told at once, and have a moment to end.
func (s *Server) Close() error {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		return errors.Join(s.server.Close(), <-s.done)
	}
	return <-s.done
}
