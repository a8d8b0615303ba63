package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
)

// lie is something untrue that is told to the checks; exactly those of the
// invariants that it breaks must find it.
type lie struct {
	name string
	want []string
	sql  string       // each statement must change something
	tell func(*facts) // beside the database
	ack  string       // a query for the hint of an ack
}

// broke makes a lie about the database that breaks one invariant.
func broke(id, name, sql string) lie { return lie{name: name, want: []string{id}, sql: sql} }

// of is the job that the lies are about.
const of = `(SELECT id FROM jobs WHERE key = 'order-0')`

// endLies are told when all jobs have ended.
var endLies = []lie{
	{name: "an effect that was only started", want: []string{"I1", "I3"}, sql: `UPDATE effects SET state = 'started' WHERE job = ` + of + ` AND name = 'charge'`},
	broke("I1", "a completed row twice", `INSERT INTO effects (n, key, request, seq, name, class, not_done, state, result, fence, holder, turn)
		SELECT n + 1000, key, request, seq, name, class, not_done, state, result, fence, holder, turn FROM effects WHERE job = `+of+` AND name = 'charge'`),
	broke("I1", "the result of another key", `UPDATE effects SET result = convert_to('{"receipt":"00"}', 'UTF8') WHERE job = `+of+` AND name = 'ship'`),
	{name: "applied twice under two keys", want: []string{"I1"}, tell: func(w *facts) { w.applied["00"], w.asked = "ship order-0", w.asked+1 }},
	{name: "applied for nobody", want: []string{"I1"}, tell: func(w *facts) { w.applied["00"], w.asked = "ship nobody", w.asked+1 }},
	{name: "recorded and not applied", want: []string{"I1"}, tell: func(w *facts) { delete(w.applied, w.keyOf("ship order-0")) }},
	{name: "applied without being asked for", want: []string{"I1"}, tell: func(w *facts) { w.asked = 0 }},

	broke("I3", "an ordinal", `UPDATE receipts SET ledger = ledger + 1 WHERE ledger / 100000000000 = 1 AND job = `+of),
	broke("I3", "a receipt that went with its row", receipt("id", 11_000_000_000, of)),
	broke("I3", "a Leg2 entry that no message made", `UPDATE instances SET ledger = ledger + 1 WHERE job = `+of+` AND activity = 'charge'`),
	broke("I3", "no run of completion tasks, of a child", `UPDATE jobs SET tasks_seq = NULL WHERE parent_job = `+of),
	broke("I3", "a row", `INSERT INTO dispatches (guid, job, kind, activity, dad, topic, element, dead, publication, turn, turn_sent, attempt, runs, fence, effects_seq, origin, undo)
		SELECT gen_random_uuid(), id, 'cycle', 'charge', ',0,0', '', 0, false, 1, 1, 1, 1, 0, 0, 0, 1, false FROM jobs WHERE id = `+of),
	broke("I3", "a wait", `INSERT INTO waits SELECT id, id, id, 'trip', ',0,0', 't', 'k', false, 0, 0, 0, 1, NULL FROM jobs WHERE id = `+of),
	broke("I6", "a dead letter", `INSERT INTO dead_letters (job, guid, kind, activity, dad, reason, message, ledger, at) SELECT id, id, 'leg1', 'charge', ',0,0', 'r', 'm', 0, 0 FROM jobs WHERE id = `+of),

	broke("I13", "money from nowhere", `UPDATE accounts SET balance = balance + 1 WHERE id = 1`),
	broke("I13", "a transfer twice", `INSERT INTO transfers VALUES ('order-0')`),
	broke("I13", "no transfer", `DELETE FROM transfers WHERE id = 'order-0'`),
	broke("I13", "a transfer undone", `UPDATE accounts SET balance = balance + CASE id WHEN 0 THEN 1 ELSE -1 END WHERE id IN (0, 1)`),

	{name: "the receipt of another job", want: []string{"C9"}, tell: func(w *facts) {
		a, b := w.keyOf("charge order-0"), w.keyOf("charge order-1")
		w.applied[a], w.applied[b] = w.applied[b], w.applied[a]
	}},
	{name: "a job that is not there", want: []string{"I1", "I13", "C9"}, tell: func(w *facts) { w.jobs = append(w.jobs, "order-x") }},
}

// keyOf is the key under which the service outside applied something.
func (w *facts) keyOf(what string) string {
	for key, applied := range w.applied {
		if applied == what {
			return key
		}
	}
	return ""
}

// late is a job whose function waits for its signal while the others have ended.
const late = "order-late"

// openLies are told to the watcher, after a true sample, while a job is open.
var openLies = []lie{
	broke("I10", "an entry of the journal has vanished", `DELETE FROM entries WHERE seq = 2 AND chain = '00000000-0000-0000-0000-000000000000' AND job = `+ofLate),
	broke("I10", "an entry was written anew", `UPDATE entries SET hash = sha256(hash) WHERE seq = 2 AND job = `+ofLate),
	broke("I13", "money from nowhere", `UPDATE accounts SET balance = balance + 1 WHERE id = 1`),
	{name: "a response acked and not recorded", want: []string{"I8"}, ack: `SELECT json_build_object('kind', 'response', 'job', job, 'row', guid, 'turn', turn)::text
		FROM dispatches WHERE kind = 'request' AND job = ` + ofLate},
	{
		name: "a message acked with steps left", want: []string{"I8"}, ack: `SELECT json_build_object('kind', 'start', 'job', id, 'row', id, 'flow', 'cell')::text FROM jobs WHERE id = ` + ofLate,
		sql: receipt("id", 111_000_000_000, ofLate),
	},
	{name: "a row that was acked and stands", want: []string{"I8"}, ack: `SELECT json_build_object('kind', kind, 'job', job, 'row', guid)::text
		FROM dispatches WHERE kind = 'wakeup' AND job = ` + ofLate},
	// What is true:
	{name: "a response of the turn before, acked", ack: `SELECT json_build_object('kind', 'response', 'job', job, 'row', guid, 'turn', turn - 1)::text
		FROM dispatches WHERE kind = 'request' AND job = ` + ofLate},
	{
		name: "the order of a job that has begun, acked", ack: `SELECT json_build_object('kind', 'start', 'job', id, 'row', id, 'flow', '')::text FROM jobs WHERE id = ` + ofLate,
		sql: receipt("id", 111_000_000_000, ofLate),
	},
	{name: "a message whose row is gone, acked", ack: `SELECT json_build_object('kind', 'leg1', 'job', id, 'row', gen_random_uuid())::text FROM jobs WHERE id = ` + ofLate},
}

// receipt inserts one of a message of the job.
func receipt(guid string, ledger int64, job string) string {
	return fmt.Sprintf("INSERT INTO receipts (n, guid, ledger, verdict, seq) SELECT n, %s, %d, 'handled', 1 FROM jobs WHERE id = %s", guid, ledger, job)
}

const ofLate = `(SELECT id FROM jobs WHERE key = '` + late + `')`

// Each check finds the lies about its invariant, and only those; of what is true
// none complains.
func TestChecksFindLies(t *testing.T) {
	t.Parallel()
	c := &cell{kind: &kind{name: "none"}, t: t, lane: newLane(t)}
	c.setUp()
	watch := c.watch()
	c.victim = startProcess(t, os.Args[0], c.config())
	c.startJobs()
	job, err := c.rt.Start(t.Context(), "cell", late, orderOf(late))
	require.NoError(t, err)
	c.end()
	db, err := connect(t.Context(), c.dsn, c.space)
	require.NoError(t, err)
	defer db.Close(context.Background())
	c.eventually("nothing but the wait of "+late, func() error {
		var open, waits int
		err := db.QueryRow(t.Context(), "SELECT (SELECT sum(semaphore) FROM jobs), (SELECT count(*) FROM waits)").Scan(&open, &waits)
		if err == nil && (open != 1 || waits != 1) {
			err = fmt.Errorf("%d obligations, %d waits", open, waits)
		}
		return err
	})
	c.drain()
	c.tellOpen(db)

	_, err = c.rt.Signal(t.Context(), "traveller", late, late, quipu.IdempotencyKey("s-"+late))
	require.NoError(t, err)
	c.another()
	c.started[late] = job
	c.end()
	c.drain()
	watch()
	c.check()
	c.tellEnded(db)
}

// tellOpen tells the lies of an open job to the watcher's eyes.
func (c *cell) tellOpen(db *pgx.Conn) {
	ctx := c.t.Context()
	before, broken, err := watched(ctx, db, nil, nil)
	require.NoError(c.t, err)
	require.Empty(c.t, broken)
	for _, l := range openLies {
		c.t.Run("open/"+l.name, func(t *testing.T) {
			l.told(t, db, func(tx pgx.Tx) {
				var acked []json.RawMessage
				if l.ack != "" {
					hints, err := column(ctx, tx, l.ack)
					require.NoError(t, err)
					require.NotEmpty(t, hints)
					acked = append(acked, json.RawMessage(hints[0]))
				}
				_, broken, err := watched(ctx, tx, before, acked)
				require.NoError(t, err)
				require.Equal(t, l.want, names(broken), "%v", errors.Join(broken...))
			})
		})
	}
}

// tellEnded tells the lies of jobs that have ended. The verifier sees only what is
// committed: its lies go into a copy of the database.
func (c *cell) tellEnded(db *pgx.Conn) {
	ctx := c.t.Context()
	for _, l := range endLies {
		if slices.Contains(l.want, "I3") {
			continue
		}
		c.t.Run("ended/"+l.name, func(t *testing.T) {
			l.told(t, db, func(tx pgx.Tx) {
				w := c.world(tx)
				if l.tell != nil {
					w.applied = maps.Clone(w.applied)
					l.tell(w)
				}
				require.Equal(t, l.want, complaints(ctx, t, w, "I3"))
			})
		})
	}
	c.rt.Close()
	require.NoError(c.t, db.Close(ctx))
	for i, l := range endLies {
		if !slices.Contains(l.want, "I3") {
			continue
		}
		c.t.Run("ended/"+l.name, func(t *testing.T) {
			name := fmt.Sprintf("lie%d", i)
			server, err := pgx.Connect(ctx, c.lane.pg.DSN("postgres"))
			require.NoError(t, err)
			defer server.Close(ctx)
			var source string
			require.NoError(t, server.QueryRow(ctx, "SELECT datname FROM pg_database WHERE datname LIKE 'cell%'").Scan(&source))
			_, err = server.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+source)
			require.NoError(t, err)
			copied, err := connect(ctx, c.lane.pg.DSN(name), c.space)
			require.NoError(t, err)
			defer copied.Close(ctx)
			w := c.world(copied)
			w.dsn = c.lane.pg.DSN(name)
			require.Empty(t, complaints(ctx, t, w, ""))
			require.NoError(t, l.say(ctx, copied))
			require.Equal(t, l.want, complaints(ctx, t, w, ""))
		})
	}
}

// told tells the lie in a transaction that is rolled back.
func (l lie) told(t *testing.T, db *pgx.Conn, look func(pgx.Tx)) {
	tx, err := db.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.Background())) }()
	require.NoError(t, l.say(t.Context(), tx))
	look(tx)
}

// say changes the database, which is not asked whether that may be.
func (l lie) say(ctx context.Context, db interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) error {
	if l.sql == "" {
		return nil
	}
	var schema string
	if err := db.QueryRow(ctx, "SELECT current_schema()").Scan(&schema); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, "SET session_replication_role = replica"); err != nil {
		return err
	}
	if _, err := db.Exec(ctx, strings.ReplaceAll(byJob(writable), "{schema}", schema)); err != nil {
		return err
	}
	tag, err := db.Exec(ctx, strings.ReplaceAll(l.sql, "{schema}", schema))
	if err == nil {
		_, err = db.Exec(ctx, strings.ReplaceAll(byJob(joined), "{schema}", schema))
	}
	if err == nil && tag.RowsAffected() == 0 {
		err = errors.New("the lie changes nothing")
	}
	return err
}

// complaints are the ids of the checks, but one, that complain.
func complaints(ctx context.Context, t *testing.T, w *facts, but string) (ids []string) {
	t.Helper()
	for _, k := range checks {
		if k.id == but {
			continue
		}
		if err := k.run(ctx, w); err != nil {
			require.ErrorAs(t, err, new(*wrong))
			t.Log(err)
			ids = append(ids, k.id)
		}
	}
	return ids
}

// names are the ids of invariants that are broken.
func names(broken []error) (ids []string) {
	for _, err := range broken {
		ids = append(ids, err.(*wrong).id)
	}
	return ids
}
