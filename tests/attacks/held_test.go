package attacks

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// hold does statements in a transaction that stays open until release.
func (g *crowd) hold(c *pgx.Conn, statements ...string) (release func()) {
	g.t.Helper()
	tx, err := c.Begin(g.t.Context())
	require.NoError(g.t, err)
	for _, s := range statements {
		_, err := tx.Exec(g.t.Context(), s)
		require.NoError(g.t, err, s)
	}
	return func() { require.NoError(g.t, tx.Rollback(context.WithoutCancel(g.t.Context()))) }
}

// advisory takes an advisory lock by its name.
func advisory(name string) string {
	return fmt.Sprintf("SELECT pg_advisory_xact_lock(hashtextextended('quipu %s quipu_shop', 0))", name)
}

// TestWhatALoginHolds_S8: any login of the database holds advisory locks and announces, and a client holds rows and
// keeps its inserts open. That stops what concerns the mailbox, the job and the signal until the transaction ends, and
// nothing else: other jobs go on, flows are deployed, the owner migrates.
func TestWhatALoginHolds_S8(t *testing.T) {
	t.Parallel()
	g := newCrowd(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	owner := g.open(nil)
	g.Deploy(owner, agreedFlow)
	start := func(key string) quipu.Job {
		job, err := g.engine.Start(ctx, "agreed", key, nil)
		require.NoError(t, err)
		return job
	}
	late := start("late")
	require.Eventually(t, func() bool { return g.count(g.admin, "waits WHERE key = 'late'") == 1 }, patience, 10*time.Millisecond)

	box := collation.Mailbox("shop", "agreed", "held")
	var once sync.Once
	t.Cleanup(func() { once.Do(g.goOn) })
	locks := g.hold(g.by["stranger"], advisory("migrate"), advisory("retire"), advisory("traces"),
		"SELECT pg_advisory_xact_lock(hashtextextended('quipu flow quipu_shop', 0))",
		fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", int64(binary.BigEndian.Uint64(box[:8]))))
	_, err := g.connect(g.stranger()).Exec(ctx, "DO $$ BEGIN FOR i IN 1..1000 LOOP PERFORM pg_notify('quipu_shop', i::text); END LOOP; END $$")
	require.NoError(t, err)
	mail, guid := collation.Mailbox("shop", "agreed", "late"), collation.SignalGUID("shop", "agreed", "late", "mine")
	rows := g.hold(g.by["client"], "SELECT FROM jobs WHERE key = 'one' FOR UPDATE",
		strings.Replace(asked("signal", "'"+mail.String()+"'::uuid", "", ""), "gen_random_uuid()", "'"+guid.String()+"'::uuid", 1),
		fmt.Sprintf("INSERT INTO signals (guid, job, state) VALUES ('%s', '%s', 'kept')", guid, mail))

	answered, begun := make(chan error, 1), make(chan error, 1)
	go func() { // its first steps wait in the mailbox
		_, err := g.engine.Start(ctx, "agreed", "held", nil)
		begun <- err
	}()
	go func() {
		_, err := g.engine.Signal(ctx, "agreed", "late", "yes", quipu.IdempotencyKey("mine"))
		answered <- err
	}()
	for i := range 5 {
		job := start(fmt.Sprint("free-", i))
		_, err := g.engine.Signal(ctx, "agreed", fmt.Sprint("free-", i), "yes")
		require.NoError(t, err)
		_, err = g.engine.Wait(ctx, job)
		require.NoError(t, err)
	}
	f, err := flow.Parse("part.yaml", []byte(part))
	require.NoError(t, err)
	require.NoError(t, owner.Deploy(ctx, f))
	require.NoError(t, below.Of(owner).Migrate(ctx))
	require.Zero(t, g.count(g.admin, "waits WHERE key = 'held'"), "what is held waits")
	require.Empty(t, answered)
	require.Empty(t, begun)

	locks()
	rows()
	require.NoError(t, devtest.Await(t, "the answer to the signal", answered))
	require.NoError(t, devtest.Await(t, "the answer to the start", begun))
	_, err = g.engine.Wait(ctx, late)
	require.NoError(t, err)
	_, err = g.engine.Signal(ctx, "agreed", "held", "yes")
	require.NoError(t, err)
	_, err = g.engine.Wait(ctx, quipu.Job{Key: "held"})
	require.NoError(t, err)
	once.Do(g.goOn)
	_, err = g.engine.Wait(ctx, g.job)
	require.NoError(t, err)
}
