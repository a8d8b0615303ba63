package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/workers"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// S14: a secret comes from the environment, or from files that are read at each call.
func TestS14Secrets(t *testing.T) {
	t.Parallel()
	p := &process{getenv: clitest.Env(map[string]string{
		"QUIPU_SECRET_Stripe-1": "sk_live_1", "QUIPU_HOSTS_Stripe-1": "api.stripe.example, 10.0.0.1", "QUIPU_SECRET_LOST": "sk_live_2",
	})}
	found := p.builtins().Secrets
	s, err := found("Stripe-1")
	require.NoError(t, err)
	require.Equal(t, workers.Secret{Value: "sk_live_1", Hosts: []string{"api.stripe.example", "10.0.0.1"}}, s)
	_, err = found("LOST")
	require.EqualError(t, err, "QUIPU_HOSTS_LOST does not say to which hosts it is sent")
	_, err = found("AWAY")
	require.ErrorIs(t, err, errNoSecret)
	require.ErrorContains(t, err, "set QUIPU_SECRET_AWAY")

	dir := t.TempDir()
	p.opts.secrets = dir
	found = p.builtins().Secrets
	_, err = found("Stripe-1")
	require.ErrorIs(t, err, errNoSecret, "the environment does not count beside a directory")
	write(t, dir, "Stripe-1", "sk_live_3\r\n")
	_, err = found("Stripe-1")
	require.ErrorContains(t, err, "its hosts: ")
	write(t, dir, "Stripe-1.hosts", "api.stripe.example\nother.example\n")
	s, err = found("Stripe-1")
	require.NoError(t, err)
	require.Equal(t, workers.Secret{Value: "sk_live_3", Hosts: []string{"api.stripe.example", "other.example"}}, s)
	write(t, dir, "Stripe-1", strings.Repeat("x", 1<<20))
	s, err = found("Stripe-1")
	require.NoError(t, err)
	require.Greater(t, len(s.Value), work.MaxSecret, "so that it is refused")
	require.Less(t, len(s.Value), work.MaxSecret+8)
}

// S14: a worker can do without the built-in handlers.
func TestS14NoBuiltins(t *testing.T) {
	t.Parallel()
	s := cli.Streams{Err: &strings.Builder{}, Getenv: clitest.Env(nil)}
	for none, topics := range map[bool]int{true: 0, false: 4} {
		o := options{log: "text", level: "info", noBuiltins: none}
		p, err := newProcess(o, s)
		require.NoError(t, err)
		require.Len(t, p.config().Workers.Topics(), topics)
	}
}

// S14: the built-in http is told where the servers of the process listen.
func TestS14OwnServersAreKnown(t *testing.T) {
	t.Parallel()
	var own ownServers
	require.Empty(t, own.list())
	own.add("", "http://[::]:8080", "postgres://u:p@127.0.0.1:5433/quipu?sslmode=disable", "nats://127.0.0.1:4223", "no url\x00")
	require.Equal(t, []string{"[::]:8080", "127.0.0.1:5433", "127.0.0.1:4223"}, own.list())
	var p process
	p.own.add("http://127.0.0.1:1")
	require.Equal(t, []string{"127.0.0.1:1"}, p.builtins().HTTPOwn())
}
