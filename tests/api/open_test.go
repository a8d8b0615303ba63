package api_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// A flow that is nil is refused before any other is deployed.
func TestDeployRefusesNil(t *testing.T) {
	t.Parallel()
	rt := new(quipu.Runtime)
	require.EqualError(t, rt.Deploy(t.Context(), nil), "deploy: flow 1 of 1 is nil: give what flow.Parse or Build returned without an error")
	require.ErrorContains(t, rt.Deploy(t.Context(), new(flow.Flow), nil), "flow 2 of 2 is nil")
}

// A bad configuration is refused before anything connects, with its field. A database that is not
// named is refused with the variables that set it.
func TestOpenChecksItsConfig(t *testing.T) {
	t.Parallel()
	mistaken := workers.New()
	workers.Handle[int, int](mistaken, "charge", nil)
	for said, cfg := range map[string]quipu.Config{
		"the role workers needs handlers: set Workers":                           {Roles: []quipu.Role{quipu.RoleWorkers}},
		`handler of topic "charge": its function is nil`:                         {Workers: mistaken},
		`role "nurse": the roles are [engine workers schedule`:                   {Roles: []quipu.Role{"nurse"}},
		"Config.Postgres: not a connection string such as postgres://":           {Postgres: "not a dsn"},
		"Config.MaxBatch is 501: at most 500":                                    {MaxBatch: 501},
		"Config.Concurrency is 16385: at most 16384":                             {Concurrency: 16385},
		"Config.Committers is -1: at least 1, or 0 for the default":              {Committers: -1},
		"Config.Lease is 10ms: from 30ms to 1h0m0s, or 0 for the default":        {Lease: 10 * time.Millisecond},
		"Config.Resend is 1ms: from 30ms to 1h0m0s, or 0 for the default":        {Resend: time.Millisecond},
		"Config.WaitLook is 1ms: from 10ms to 1h0m0s, or 0 for the default":      {WaitLook: time.Millisecond},
		"Config.Drain is -1s: a positive time such as 10s, or 0 for the default": {Drain: -time.Second},
		"Config.Lanes is 1025: at most 1024; Config.Lease is 10ms: from 30ms":    {Lanes: 1025, Lease: 10 * time.Millisecond},
	} {
		cfg.Postgres = cmp.Or(cfg.Postgres, "postgres://nobody@127.0.0.1:1/none")
		_, err := quipu.Open(t.Context(), cfg)
		require.ErrorIs(t, err, quipu.ErrConfig)
		require.ErrorContains(t, err, said)
	}
	_, err := quipu.Open(t.Context(), quipu.Config{})
	require.ErrorIs(t, err, quipu.ErrConfig)
	for _, said := range []string{"Config.Postgres is empty", "QUIPU_POSTGRES", "QUIPU_DEV"} {
		require.ErrorContains(t, err, said)
	}
}

// A role that needs NATS says which field and which variable are missing.
func TestRunNeedsNATS(t *testing.T) {
	t.Parallel()
	rt, err := quipu.Open(t.Context(),
		quipu.Config{Postgres: devtest.Postgres(t), Roles: []quipu.Role{quipu.RoleEngine}})
	require.NoError(t, err)
	defer rt.Close()
	err = rt.Run(t.Context())
	require.ErrorIs(t, err, quipu.ErrConfig)
	require.ErrorContains(t, err, "the role engine needs NATS, and Config.NATS is empty")
	require.ErrorContains(t, err, "QUIPU_NATS")
}

// A process logs that it takes work, and which; that a handler panicked, with the stack; and that
// it has drained.
func TestARuntimeIsNotSilent(t *testing.T) {
	t.Parallel()
	var log devtest.Log
	reg := workers.New()
	workers.Handle(reg, "charge", func(context.Context, int) (int, error) { panic("no such card") })
	rt, err := quipu.Open(t.Context(), quipu.Config{
		Postgres: devtest.Postgres(t), NATS: devtest.NATS(t).URL(), Workers: reg,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	defer rt.Close()
	require.NoError(t, rt.Check(t.Context()), "nothing was asked of it yet, and the servers answer")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	f, err := flow.New("order").Version("1").Trigger("start").Build()
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, rt.Deploy(t.Context(), f))
	}
	require.Equal(t, 1, strings.Count(log.String(), "msg=\"flow deployed\" flow=order version=1"))
	_, err = rt.Call(devtest.Context(t), "charge", "c-1", 1)
	var failed *quipu.JobError
	require.True(t, errors.As(err, &failed), "%v", err)
	_, err = rt.Wait(devtest.Context(t), quipu.Job{Key: "c-1"})
	require.True(t, errors.As(err, &failed), "the key is enough: %v", err)
	events, err := rt.History(t.Context(), quipu.Job{Key: "c-1"})
	require.NoError(t, err)
	require.Equal(t, view.KindClosed, events[len(events)-1].Kind)
	require.ErrorIs(t, rt.Run(ctx), quipu.ErrRun)
	require.NoError(t, rt.Check(t.Context()))
	stop()
	require.NoError(t, devtest.Await(t, "the end of the drain", done))
	require.ErrorIs(t, rt.Check(t.Context()), quipu.ErrNotReady, "it drained")
	for _, said := range []string{"msg=ready space=default roles=\"[engine workers schedule retention]\" topics=[charge]", "level=WARN msg=\"a handler panicked\"", "open_test.go", "msg=drained"} {
		require.Contains(t, log.String(), said)
	}
}

// Errors have the right name: "unavailable: retry" is only for a database that is away.
func TestErrorsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	rt, err := quipu.Open(t.Context(), quipu.Config{Postgres: dsn, Roles: []quipu.Role{quipu.RoleRetention}})
	require.NoError(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	says := func(err error, words string) {
		t.Helper()
		require.ErrorIs(t, err, store.ErrUnavailable, "whoever retries goes on to")
		require.ErrorContains(t, err, words)
		require.NotContains(t, err.Error(), "unavailable")
	}
	_, err = rt.Find(gone, "k")
	says(err, "context canceled")
	rt.Close()
	_, err = rt.Signal(t.Context(), "topic", "k", nil)
	says(err, "the runtime has been closed")
	require.ErrorIs(t, err, quipu.ErrClosed)

	wrong, err := url.Parse(dsn)
	require.NoError(t, err)
	wrong.User = url.UserPassword(wrong.User.Username(), "wrong")
	_, err = quipu.Open(t.Context(), quipu.Config{Postgres: wrong.String()})
	says(err, "the database refuses the user or the password")
	require.NotContains(t, err.Error(), ":wrong@")

	absent, err := url.Parse(dsn)
	require.NoError(t, err)
	absent.Path = "/nowhere"
	_, err = quipu.Open(t.Context(), quipu.Config{Postgres: absent.String()})
	says(err, "there is no database nowhere")
}

// If NATS does not answer, Open fails with its address, unless it is told not to wait. Run fails
// if the number of lanes differs from that of the other processes.
func TestOpenReachesNATS(t *testing.T) {
	t.Parallel()
	cfg := quipu.Config{Postgres: devtest.Postgres(t), NATS: "nats://me:secret@127.0.0.1:1", NATSWait: 50 * time.Millisecond}
	_, err := quipu.Open(t.Context(), cfg)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "nats at nats://redacted@127.0.0.1:1 was not reached within 50ms")
	require.NotContains(t, err.Error(), "secret")
	both := cfg
	both.Postgres = "postgres://127.0.0.1:2/x"
	_, err = quipu.Open(t.Context(), both)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "127.0.0.1:2")
	require.ErrorContains(t, err, "nats at nats://redacted@127.0.0.1:1 was not reached", "both are named")
	cfg.NATSWait = -1
	rt, err := quipu.Open(t.Context(), cfg)
	require.NoError(t, err, "it may come later")
	require.ErrorIs(t, rt.Check(t.Context()), quipu.ErrNotReady)
	rt.Close()

	cfg.NATS, cfg.NATSWait, cfg.Lanes = devtest.NATS(t).URL(), 0, 8
	first, err := quipu.Open(t.Context(), cfg)
	require.NoError(t, err)
	defer first.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- first.Run(ctx) }()
	devtest.Await(t, "the first process", first.Ready())
	cfg.Lanes = 4
	rt, err = quipu.Open(t.Context(), cfg)
	require.NoError(t, err, "a client has no lanes")
	err = rt.Run(ctx)
	rt.Close()
	require.ErrorIs(t, err, quipu.ErrConfig)
	require.ErrorContains(t, err, "Lanes is 4 here and 8 in process ")
	living, err := first.Processes(t.Context())
	require.NoError(t, err)
	require.Len(t, living, 1)
	require.Equal(t, quipu.AllRoles(), living[0].Roles)
	stop()
	require.NoError(t, devtest.Await(t, "the end of the drain", done))
}
