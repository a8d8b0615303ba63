package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/dev"
)

// database is the name of worker dev's database.
const database = "quipu"

const maxPort = 65535

// portsFile keeps the ports, in the data directory.
const portsFile = "ports.json"

// settings are those of a Postgres that shares its machine with other programs.
var settings = map[string]string{"shared_buffers": "128MB", "max_connections": "200", "max_wal_size": "2GB"}

var errPostgresEnded = errors.New("the private Postgres ended by itself; its log is postgres/postgres.log in the data directory")

// servers are the servers of worker dev.
type servers struct {
	nats     *dev.NATS
	postgres *dev.Postgres
	alone    bool // no worker runs beside them
}

// ports are kept over restarts, so that clients find the servers again.
type ports struct {
	Postgres int `json:"postgres"`
	NATS     int `json:"nats"`
}

// startServers runs both servers below dir. A requested port must be free; otherwise the last
// port is used again if it is free.
func startServers(ctx context.Context, dir string, d devOptions, log *slog.Logger) (*servers, error) {
	last := readPorts(dir)
	pgPort, err := choosePort(ctx, "postgres-port", d.postgresPort, last.Postgres)
	if err != nil {
		return nil, err
	}
	natsPort, err := choosePort(ctx, "nats-port", d.natsPort, last.NATS)
	if err != nil {
		return nil, err
	}
	n, err := dev.StartNATS(ctx, filepath.Join(dir, "nats"), dev.NATSOptions{Port: natsPort, Log: log})
	if err != nil {
		return nil, err
	}
	pg, err := dev.StartPostgres(ctx, filepath.Join(dir, "postgres"), dev.PostgresOptions{
		BinDir: d.pgBin, Install: d.install, Port: pgPort, Databases: []string{database}, Settings: settings,
	})
	if err != nil {
		return nil, errors.Join(err, n.Shutdown())
	}
	s := &servers{nats: n, postgres: pg}
	if err := s.keepPorts(dir); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// stop stops both, the database last.
func (s *servers) stop() error {
	return errors.Join(s.nats.Shutdown(), s.postgres.Stop(dev.StopFast))
}

// watch cancels with errPostgresEnded if Postgres ends before ctx does.
func (s *servers) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
	case <-s.postgres.Exited():
		cancel(errPostgresEnded)
	}
}

// postgresPort returns the port in the connection string.
func (s *servers) postgresPort() int { return portOf(s.postgres.DSN(database)) }

func portOf(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return 0
	}
	return port
}

func (s *servers) keepPorts(dir string) error {
	text, err := json.Marshal(ports{Postgres: s.postgresPort(), NATS: portOf(s.nats.URL())})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, portsFile), append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep the ports: %w", err)
	}
	return nil
}

// readPorts returns the last ports, or none if the file cannot be read: then any free port is
// used.
func readPorts(dir string) ports {
	var p ports
	text, err := os.ReadFile(filepath.Join(dir, portsFile))
	if err != nil || json.Unmarshal(text, &p) != nil {
		return ports{}
	}
	return p
}

// choosePort returns the port of the flag, which must be free; without the flag the last port if
// it is free, or else 0 for any.
func choosePort(ctx context.Context, flag string, asked, last int) (int, error) {
	switch {
	case asked == 0:
		return stillFree(ctx, last), nil
	case asked < 0 || asked > maxPort:
		return 0, cli.Exitf(cli.CodeUsage, "--%s %d: use a port of 1 to %d, or leave it out for any free one", flag, asked, maxPort)
	case stillFree(ctx, asked) == 0:
		return 0, fmt.Errorf("--%s %d: nobody can listen there on 127.0.0.1: take another port, or leave it out for any free one", flag, asked)
	}
	return asked, nil
}

// stillFree returns the port, or 0 if it is taken.
func stillFree(ctx context.Context, port int) int {
	if port <= 0 {
		return 0
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0
	}
	_ = l.Close() // only a check
	return port
}
