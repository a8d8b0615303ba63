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
	// natsSlice is how long one wait for readiness lasts before ctx is checked.
	natsSlice = 100 * time.Millisecond
	// natsPoll is the pause between two checks whether an ending server is idle.
	natsPoll       = time.Millisecond
	natsMaxClients = 1 << 16 // clients that are disconnected at most
	loopback       = "127.0.0.1"
)

// NATSOptions are options of an embedded server; the zero value is fine.
type NATSOptions struct {
	// Port on 127.0.0.1; 0 takes any free one. Restart keeps it.
	Port int
	// MaxPayload in bytes; 0 is the server's default, 1 MiB.
	MaxPayload int32
	// Login returns the user that a client with this name and password is, with its rights; nil
	// refuses the client. It is asked for each connection, so that users can come later than the
	// server. Without Login everybody has all rights, which is what dev is for.
	Login func(user, password string) *server.User
	// Log gets the server's warnings and errors; nil drops them.
	Log *slog.Logger
}

// login is NATSOptions.Login as the server takes it.
type login func(user, password string) *server.User

// Check implements server.Authentication.
func (l login) Check(c server.ClientAuthentication) bool {
	said := c.GetOpts()
	user := l(said.Username, said.Password)
	if user != nil {
		c.RegisterUser(user)
	}
	return user != nil
}

// NATS is an embedded server with JetStream on files.
type NATS struct {
	dir     string
	opts    NATSOptions
	release func() error

	mu     sync.Mutex
	server *server.Server // nil while shut down
}

// StartNATS runs a server on dir until Shutdown. Its streams keep what they held before. A second
// server on dir gets a *LockedError.
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
	opts := &server.Options{
		ServerName: "quipu-dev",
		Host:       loopback,
		Port:       port,
		JetStream:  true,
		StoreDir:   n.dir,
		NoSigs:     true, // the process handles signals itself

		MaxPayload: n.opts.MaxPayload,
	}
	if n.opts.Login != nil {
		opts.CustomClientAuthentication = login(n.opts.Login)
	}
	s, err := server.NewServer(opts)
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
		n.opts.Port = addr.Port // so that clients find a restarted server
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

// URL returns the address for clients. It stays the same over Restart.
func (n *NATS) URL() string { return fmt.Sprintf("nats://%s:%d", loopback, n.opts.Port) }

// InProcessConn makes *NATS an in-process connection provider of nats.go, without a socket. It
// works again after Restart.
func (n *NATS) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	s := n.server
	n.mu.Unlock()
	if s == nil {
		return nil, errors.New("embedded nats server is shut down")
	}
	return s.InProcessConn()
}

// Shutdown stops the server and releases the directory. It is idempotent.
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

// Restart stops the server and starts it on the same directory and port, like a crash of the
// server alone (F9).
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

// quiesce disconnects the server's clients and waits, at most natsReadyWait, until the server has
// finished their requests. Otherwise a stream that is being made at the end would stay open and
// write to a directory that another server may use by then.
func quiesce(s *server.Server) {
	conns, err := s.Connz(&server.ConnzOptions{Limit: natsMaxClients})
	if err != nil {
		return // no clients
	}
	for _, c := range conns.Conns {
		_ = s.DisconnectClientByID(c.Cid) // it may have gone by itself
	}
	for end := time.Now().Add(natsReadyWait); time.Now().Before(end); time.Sleep(natsPoll) {
		if info, err := s.Jsz(nil); err != nil || info.API.Inflight == 0 {
			return
		}
	}
}

// serverLog passes the server's log on. Notices go to debug: they do not interest users of dev.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats: " + fmt.Sprintf(format, v...))
}

func (l serverLog) Warnf(format string, v ...any) { l.log.Warn("nats: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Errorf(format string, v ...any) { l.log.Error("nats: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Fatalf(format string, v ...any) { l.log.Error("nats: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Debugf(format string, v ...any) { l.log.Debug("nats: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Tracef(format string, v ...any) { l.log.Debug("nats: " + fmt.Sprintf(format, v...)) }
