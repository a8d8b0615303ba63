package floor

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// stepsPerJob and bodyBytes give the rows the shape of a job of ten steps.
const (
	stepsPerJob = 10
	bodyBytes   = 800
)

// Run says how the rows are written.
type Run struct {
	DSN    string // database
	Schema string // the schema of a migrated space
	Conns  int    // connections that write at once
	Batch  int    // steps per transaction, each of another job
	Steps  int    // in total; rounded up to whole jobs
}

// Result is the outcome of a run.
type Result struct {
	Steps int
	Took  time.Duration
}

// PerSecond returns the rate of the run.
func (r Result) PerSecond() float64 { return float64(r.Steps) / r.Took.Seconds() }

// Write does the run. It makes the jobs before the clock starts.
func Write(ctx context.Context, r Run) (Result, error) {
	jobs := (r.Steps/stepsPerJob/(r.Conns*r.Batch) + 1) * r.Conns * r.Batch
	writers := make([]*writer, r.Conns)
	for i := range writers {
		w, err := open(ctx, r, jobs/r.Conns)
		if err != nil {
			return Result{}, err
		}
		defer func() { _ = w.conn.Close(context.WithoutCancel(ctx)) }()
		writers[i] = w
	}
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range writers {
		g.Go(func() error { return w.run(ctx) })
	}
	if err := g.Wait(); err != nil {
		return Result{}, err
	}
	return Result{Steps: jobs * stepsPerJob, Took: time.Since(began)}, nil
}

// writer writes on one connection, one transaction after another.
type writer struct {
	conn  *pgx.Conn
	batch int
	jobs  [][16]byte
	body  []byte
}

const insertJobs = `INSERT INTO jobs (id, n, key, generation, flow_name, flow_version, flow_digest, trigger, state, semaphore,
	head_seq, head_hash, started, trace)
	SELECT id, nextval('numbers_months'), id::text, 1, 'floor', '1', $2, 'start', 'open', 1, 0, $2, 0, '' FROM unnest($1::uuid[]) AS w (id)`

const insertFirst = `INSERT INTO instances (n, activity, dad, dad_text, ledger)
	SELECT n, 'step_0', $2, ',0,0', 1100000000000 FROM jobs WHERE id = ANY ($1::uuid[])`

const insertRow = `INSERT INTO dispatches (guid, job, kind, activity, dad, topic, element, body, next_at, dead, publication,
	published_at, turn, turn_sent, attempt, runs, fence, effects_seq, origin, undo)
	SELECT $2, id, 'request', $3, ',0,0', 'noop', 0, '{}', 1, false, 1, 1, 1, 1, 1, 0, 0, 0, 1, false FROM unnest($1::uuid[]) AS w (id)`

func open(ctx context.Context, r Run, jobs int) (*writer, error) {
	cfg, err := pgx.ParseConfig(r.DSN)
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	cfg.RuntimeParams["search_path"] = pgx.Identifier{r.Schema}.Sanitize()
	cfg.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	for _, off := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_bitmapscan", "enable_material", "jit"} { // as the store sets them
		cfg.RuntimeParams[off] = "off"
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("floor: connect: %w", err)
	}
	w := &writer{conn: conn, batch: r.Batch, jobs: make([][16]byte, jobs), body: make([]byte, bodyBytes)}
	for i := range w.jobs {
		_, _ = rand.Read(w.jobs[i][:])
	}
	digest := make([]byte, 32)
	if _, err = conn.Exec(ctx, insertJobs, w.jobs, digest); err == nil {
		_, err = conn.Exec(ctx, insertFirst, w.jobs, id(0))
	}
	if err == nil {
		_, err = conn.Exec(ctx, insertRow, w.jobs, id(0), "step_0")
	}
	if err != nil {
		return nil, fmt.Errorf("floor: prepare: %w", err)
	}
	return w, nil
}

func id(n int) [16]byte { return [16]byte{15: byte(n), 14: byte(n >> 8)} }

func (w *writer) run(ctx context.Context) error {
	for first := 0; first < len(w.jobs); first += w.batch {
		jobs := w.jobs[first:min(first+w.batch, len(w.jobs))]
		for step := range stepsPerJob {
			if err := w.step(ctx, jobs, step); err != nil {
				return fmt.Errorf("floor: step: %w", err)
			}
		}
	}
	return nil
}

// step writes one step of each of the jobs, in one transaction and one round
// trip.
func (w *writer) step(ctx context.Context, jobs [][16]byte, n int) error {
	b := &pgx.Batch{}
	b.Queue(`BEGIN`)
	b.Queue(`UPDATE jobs SET head_seq = $2, head_hash = head_hash WHERE id = ANY ($1::uuid[])`, jobs, n+1)
	b.Queue(`UPDATE instances i SET ledger = ledger + 200000000000001, result_seq = 1, code = 200
		FROM (SELECT n FROM jobs WHERE id = ANY ($1::uuid[]) OFFSET 0) AS j
		WHERE i.n = j.n AND activity = $2 AND dad = $3`, jobs, name(n), id(n))
	b.Queue(`INSERT INTO instances (n, activity, dad, dad_text, ledger)
		SELECT n, $2, $3, ',0,0', 1100000000000 FROM jobs WHERE id = ANY ($1::uuid[])`, jobs, name(n+1), id(n+1))
	b.Queue(`INSERT INTO receipts (n, guid, ledger, verdict, seq)
		SELECT n, $2, 11000000001, 'handled', 1 FROM jobs WHERE id = ANY ($1::uuid[])`, jobs, id(n))
	b.Queue(`INSERT INTO entries (n, chain, seq, body, hash)
		SELECT n, '00000000-0000-0000-0000-000000000000', $2, $3, $4 FROM jobs WHERE id = ANY ($1::uuid[])`,
		jobs, n+1, w.body, w.body[:32])
	b.Queue(`DELETE FROM dispatches WHERE job = ANY ($1::uuid[]) AND guid = $2`, jobs, id(n))
	b.Queue(insertRow, jobs, id(n+1), name(n+1))
	b.Queue(`COMMIT`)
	return w.conn.SendBatch(ctx, b).Close()
}

func name(n int) string { return fmt.Sprintf("step_%d", n) }
