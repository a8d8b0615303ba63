package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	natsReadyWait = 20 * time.Second
	// natsSlice is how long one look for readiness waits before it looks at ctx.
	natsSlice = 100 * time.Millisecond
	// natsPoll is between two looks at what a server that ends has to do.
	natsPoll       = time.Millisecond
	natsMaxClients = 1 << 16 // that are asked to go
	loopback       = "127.0.0.1"
)

// NATSOptions of an embedded server; the zero value is right.
type NATSOptions struct {
	// Port on 127.0.0.1; 0 is any free one, kept over Restart.
	Port int
	// MaxPayload in bytes; 0 is the server's default, 1 MiB.
	MaxPayload int32
	// MaxStore bounds the disk space of JetStream in bytes; 0 is the server's
	// default, three quarters of what is free.
	MaxStore int64
	// Log gets the server's warnings and errors; nil is none.
	Log *slog.Logger
}

// NATS is an embedded server with JetStream on files.
type NATS struct {
	dir     string
	opts    NATSOptions
	release func() error

	mu     sync.Mutex
	server *server.Server // nil while shut down
}

// StartNATS runs a server on dir until Shutdown. What its streams held before is
// there again. A second one on dir gets a *LockedError.
func StartNATS(ctx context.Context, dir string, opts NATSOptions) (*NATS, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	release, err := Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	n := &NATS{dir: dir, opts: opts, release: release}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, release())
	}
	return n, nil
}

func (n *NATS) start(ctx context.Context) error {
	port := n.opts.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "quipu-dev",
		Host:       loopback,
		Port:       port,
		JetStream:  true,
		StoreDir:   n.dir,
		NoSigs:     true, // signals are the process's own

		MaxPayload:        n.opts.MaxPayload,
		JetStreamMaxStore: n.opts.MaxStore,
	})
	if err != nil {
		return fmt.Errorf("start nats in %s: %w", n.dir, err)
	}
	if n.opts.Log != nil {
		s.SetLoggerV2(serverLog{n.opts.Log}, false, false, false)
	}
	s.Start()
	if err := awaitNATS(ctx, s); err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return fmt.Errorf("start nats in %s: %w", n.dir, err)
	}
	if addr, ok := s.Addr().(*net.TCPAddr); ok {
		n.opts.Port = addr.Port // clients find a restarted server where it was
	}
	n.mu.Lock()
	n.server = s
	n.mu.Unlock()
	return nil
}

func awaitNATS(ctx context.Context, s *server.Server) error {
	ctx, cancel := context.WithTimeout(ctx, natsReadyWait)
	defer cancel()
	for !s.ReadyForConnections(natsSlice) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("server is not ready (port taken, or directory not writable?): %w", err)
		}
		if !s.Running() {
			return errors.New("server stopped while starting (port taken, or directory not writable?)")
		}
	}
	if !s.JetStreamEnabled() {
		return errors.New("JetStream did not start (directory not writable, or disk full?)")
	}
	return nil
}

// URL for clients with a socket. It stays the same over Restart.
func (n *NATS) URL() string { return fmt.Sprintf("nats://%s:%d", loopback, n.opts.Port) }

// InProcessConn makes *NATS an in-process connection provider of nats.go: no
// socket between the bus and the server. It survives Restart.
func (n *NATS) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	s := n.server
	n.mu.Unlock()
	if s == nil {
		return nil, errors.New("embedded nats server is shut down")
	}
	return s.InProcessConn()
}

// Shutdown stops the server and gives the directory back. It is idempotent.
func (n *NATS) Shutdown() error {
	n.stop()
	n.mu.Lock()
	release := n.release
	n.release = nil
	n.mu.Unlock()
	if release == nil {
		return nil
	}
	return release()
}

// Restart stops the server and starts it on the same directory and port, as
// after a crash of the server alone (F9).
func (n *NATS) Restart(ctx context.Context) error {
	n.stop()
	return n.start(ctx)
}

func (n *NATS) stop() {
	n.mu.Lock()
	s := n.server
	n.server = nil
	n.mu.Unlock()
	if s != nil {
		quiesce(s)
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// quiesce takes the server's clients away and lets it end what they have asked
// for, for at most natsReadyWait. A stream that is being made while the server ends
// would be left open, and would go on to write to a directory that may be another
// server's by then.
func quiesce(s *server.Server) {
	conns, err := s.Connz(&server.ConnzOptions{Limit: natsMaxClients})
	if err != nil {
		return // there are none to ask for anything
	}
	for _, c := range conns.Conns {
		_ = s.DisconnectClientByID(c.Cid) // it has gone by itself
	}
	for end := time.Now().Add(natsReadyWait); time.Now().Before(end); time.Sleep(natsPoll) {
		if info, err := s.Jsz(nil); err != nil || info.API.Inflight == 0 {
			return
		}
	}
}

// serverLog passes the server's log on; its notices are of no interest to a user
// of dev and go to debug.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats: " + fmt.Sprintf(format, v...))
}

func (l serverLog) Warnf(format string, v ...any) { l.log.Warn("nats: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Errorf(format string, v ...any) { l.log.Error("nats: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Fatalf(format string, v ...any) { l.log.Error("nats: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Debugf(format string, v ...any) { l.log.Debug("nats: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Tracef(format string, v ...any) { l.log.Debug("nats: " + fmt.Sprintf(format, v...)) }
