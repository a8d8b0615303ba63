package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// days is over how many days the loaded jobs have started.
const days = 7

// originals are the jobs of the part console that have run; the others are copies of them.
type originals struct {
	list, open string // ids: a job of many elements that has ended, and one that has half of them
	parent     string // id of the job whose children are listed
	back       string // cursor of a page far back
}

// share is how many of a thousand jobs are copies of one.
type share struct {
	key string
	n   int
}

// shares are those of a space in use: most jobs have completed, some stand.
var shares = []share{
	{"completed", 972},
	{"failed", 12},
	{"interrupted", 4},
	{"signal", 4},
	{"timer", 3},
	{"parent", 2},
	{"queued", 2},
	{"parked", 1},
}

// consoleFlows are those of the originals.
func consoleFlows() []*flow.Flow {
	return []*flow.Flow{
		linear(1), one("bad", "{type: worker, topic: bad}"), one("signal", `{type: hook, signal: go.on, key: "${ job.id }"}`),
		one("timer", "{type: hook, sleep: 8760h}"), one("parent", "{type: await, flow: signal}"), one("queued", "{type: worker, topic: nobody}"),
		one("parked", "{type: worker, topic: down, retry: {attempts: 1}}"),
		one("list", `{type: worker, topic: noop, each: start.output.items, parallel: 1000}`),
		one("half", `{type: worker, topic: half, each: start.output.items, retry: {attempts: 2, backoff: 8760h}}`),
	}
}

// consoleHandlers are those of their topics, but for one that nobody serves.
func consoleHandlers(reg *workers.Registry) {
	workers.HandleRaw(reg, "bad", func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, workers.Fail(422, "it is so")
	})
	workers.HandleRaw(reg, "down", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		return effects.Do(ctx, "call", func(context.Context) (json.RawMessage, error) {
			return nil, errors.New("cut off")
		}, effects.Guarded)
	})
	workers.Handle(reg, "half", func(_ context.Context, n int) (int, error) {
		if n < elements/2 {
			return n, nil
		}
		return 0, workers.Fail(503, "not now")
	})
}

// originals runs the jobs that are copied, and those of many elements.
func (b *bench) originals(ctx context.Context, space string) (*originals, error) {
	w := &work{flows: consoleFlows(), handlers: consoleHandlers, config: func(c *quipu.Config) {
		c.Logger = slog.New(slog.DiscardHandler) // the jobs that stand are meant to
	}}
	rt, stop, err := b.open(ctx, space, w)
	if err != nil {
		return nil, err
	}
	o, err := runOriginals(ctx, rt)
	return o, errors.Join(err, stop())
}

func runOriginals(ctx context.Context, rt *quipu.Runtime) (*originals, error) {
	items := make([]int, elements)
	for n := range items {
		items[n] = n
	}
	id := map[string]string{}
	for _, j := range []struct {
		flow, key string
		input     any
	}{
		{"w1", "completed", nil},
		{"bad", "failed", nil},
		{"timer", "interrupted", nil},
		{"signal", "signal", nil},
		{"timer", "timer", nil},
		{"parent", "parent", nil},
		{"queued", "queued", nil},
		{"parked", "parked", nil},
		{"list", "list", map[string]any{"items": items}},
		{"half", "half", map[string]any{"items": items}},
	} {
		var opts []quipu.StartOption
		if j.key == "list" {
			opts = append(opts, quipu.Tags{"rare"})
		}
		job, err := rt.Start(ctx, j.flow, j.key, j.input, opts...)
		if err != nil {
			return nil, err
		}
		id[j.key] = job.ID.String()
	}
	if _, err := rt.Interrupt(ctx, quipu.Job{Key: "interrupted"}); err != nil {
		return nil, err
	}
	for key, is := range map[string]func(*view.Job) bool{
		"completed": ended, "failed": ended, "interrupted": ended, "list": ended,
		"signal": func(j *view.Job) bool { return len(j.Waits) > 0 },
		"timer":  func(j *view.Job) bool { return len(j.Messages) > 0 && len(j.Activities) > 1 },
		"parent": func(j *view.Job) bool { return len(j.Activities) > 1 && len(j.Messages) == 0 },
		"queued": func(j *view.Job) bool { return len(j.Messages) > 0 && j.Messages[0].Topic == "nobody" },
		"parked": func(j *view.Job) bool { return len(j.DeadLetters) > 0 },
		"half":   func(j *view.Job) bool { return j.Entries > elements/2+100 },
	} {
		if err := until(ctx, rt, key, is); err != nil {
			return nil, err
		}
	}
	return &originals{list: id["list"], open: id["half"], parent: id["parent"], back: back()}, nil
}

func ended(j *view.Job) bool { return j.Ended }

// back is a cursor three days ago.
func back() string {
	return fmt.Sprintf("%d.00000000-0000-0000-0000-000000000000", time.Now().Add(-3*24*time.Hour).UnixMicro())
}

// until waits until a job has come so far.
func until(ctx context.Context, rt *quipu.Runtime, key string, is func(*view.Job) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		j, err := rt.Job(ctx, quipu.Job{Key: key})
		switch {
		case err != nil:
			return fmt.Errorf("job %s: %w", key, err)
		case is(j):
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// loader fills the tables of a space with copies of jobs, with statements that make many rows
// each. What is listed is there: jobs, messages, waits, dead letters. Instances and journals are
// those of the originals alone.
type loader struct {
	dsn, schema string
	jobs        int
}

// copied are the tables that are filled, each with what is not copied. j is the original's job, g
// the number of the copy.
var copied = []struct {
	table string
	from  string
	set   map[string]string
}{
	{"jobs", "", map[string]string{
		"id": "copy(j.id, g)", "n": "nextval('numbers_months')", "key": "j.key || '-' || lpad(g::text, 8, '0')", "tags": "''",
		"started": "$2 + g * $3", "closed": "$2 + g * $3 + j.closed - j.started",
	}},
	{"dispatches", "JOIN dispatches x ON x.job = j.id", map[string]string{"job": "copy(x.job, g)", "guid": "copy(x.guid, g)", "session": "NULL", "holder": "NULL"}},
	{"waits", "JOIN waits x ON x.job = j.id", map[string]string{"job": "copy(x.job, g)", "guid": "copy(x.guid, g)", "mailbox": "copy(x.mailbox, g)"}},
	{"dead_letters", "JOIN dead_letters x ON x.job = j.id", map[string]string{"job": "copy(x.job, g)", "guid": "copy(x.guid, g)"}},
}

// load makes the copies. They have started one after another, in a random mixture.
func (l *loader) load(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, l.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, fmt.Sprintf(`SET search_path = %s; CREATE FUNCTION pg_temp.copy(id uuid, g bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
		RETURN md5(id::text || g)::uuid`, l.schema))
	if err != nil {
		return err
	}
	step := (days * 24 * time.Hour).Microseconds() / int64(l.jobs)
	first := time.Now().UnixMicro() - step*int64(l.jobs+1)
	for _, c := range copied {
		names, values, err := l.columns(ctx, conn, c.table, c.set)
		if err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (%s)
			SELECT %s FROM generate_series(1, $1::bigint) AS g
			JOIN (VALUES %s) AS s (key, low, high) ON g * 7919 %% 1000 >= s.low AND g * 7919 %% 1000 < s.high
			JOIN jobs j ON j.key = s.key %s
			WHERE $2::bigint > 0 AND $3::bigint > 0 ORDER BY g`, c.table, names, values, mixture(), c.from), l.jobs, first, step); err != nil {
			return fmt.Errorf("load %s: %w", c.table, err)
		}
	}
	for _, c := range copied {
		if _, err := conn.Exec(ctx, "VACUUM ANALYZE "+c.table); err != nil {
			return err
		}
	}
	return nil
}

// mixture are the shares as ranges of a thousand.
func mixture() string {
	var all []string
	low := 0
	for _, s := range shares {
		all = append(all, fmt.Sprintf("('%s', %d, %d)", s.key, low, low+s.n))
		low += s.n
	}
	return strings.Join(all, ", ")
}

// columns names the columns of a table and what a copy has in each.
func (l *loader) columns(
	ctx context.Context, conn *pgx.Conn, table string, set map[string]string,
) (names, values string, err error) {
	rows, err := conn.Query(ctx, `SELECT column_name FROM information_schema.columns
		WHERE table_schema = $1 AND table_name = $2 AND is_identity = 'NO' ORDER BY ordinal_position`, l.schema, table)
	if err != nil {
		return "", "", err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", "", err
	}
	of := "x."
	if table == "jobs" {
		of = "j."
	}
	from := make([]string, len(all))
	for i, name := range all {
		if from[i] = set[name]; from[i] == "" {
			from[i] = of + name
		}
		from[i] = strings.ReplaceAll(from[i], "copy(", "pg_temp.copy(")
	}
	return strings.Join(all, ", "), strings.Join(from, ", "), nil
}
