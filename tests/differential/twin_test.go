package differential

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/memory"
	"github.com/quipu-journal/quipu/journal/store"
)

// twin is two stores as one. A call is made of both; answers, kinds of errors and all
// rows are held to each other. What is decided is decided once, on what Postgres has
// loaded, which is sometimes less and is then asked for.
type twin struct {
	store.Store // Postgres
	*rapid.T
	ctx    context.Context
	db     *database
	clock  int64
	letter int64 // the last that memory gave an id
	memory *memory.Store
	// spoil falsifies the next plan that is committed.
	spoil func(*collation.Plan)

	// What the sequence has made so far, to be asked for again.
	mode     collation.Mode
	flows    map[string]*flow.Flow // by name and version
	main     []*flow.Flow          // that jobs are started of
	messages []*collation.Message
	claims   []store.Claim
	leases   []store.Lease
	sessions []*process
	effects  []journal.Effect
}

// alike is how values are compared: what a store may spell as it likes is left out,
// and what is due at the same time has no order.
var alike = gocmp.Options{
	gocmp.Exporter(func(reflect.Type) bool { return true }),
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(collation.State{}, "Flow"),
	cmpopts.IgnoreFields(collation.Box{}, "Waits", "All", "signals"), // sees compares them
	cmpopts.IgnoreFields(store.JobSummary{}, "Cursor"),
	gocmp.FilterValues(func(a, b *collation.Chain) bool { return gone(a) && gone(b) }, gocmp.Ignore()),
	gocmp.FilterPath(func(p gocmp.Path) bool { return slices.Contains(unneeded, p.String()) }, gocmp.Ignore()),
	cmpopts.SortSlices(func(a, b store.DueRow) int { return order(a.Job, b.Job, a.GUID, b.GUID) }),
	cmpopts.SortSlices(func(a, b store.Outgoing) int { return compare(&a.Row, &b.Row) }),
}

// unneeded is what nobody needs of a chain of effects, and Postgres leaves out.
var unneeded = strings.Fields("Chains.Job.Key Chains.Job.Flow Chains.Job.Semaphore Chains.Job.Head Chains.Job.Started Chains.Job.Parent " +
	"Chains.Row.Topic Chains.Row.Element Chains.Row.Body Chains.Row.Publication Chains.Row.PublishedAt Chains.Row.WithinAt " +
	"Chains.Row.Origin Chains.Row.Sender Chains.Row.Pauses Chains.Row.Input Chains.Effects.Seq Chains.Effects.Turn Chains.Effects.Until")

// gone says that the job of a chain is not there, or only its tombstone.
func gone(c *collation.Chain) bool {
	return c != nil && (c.Job.State == "" || c.Job.State == journal.JobExpired)
}

func compare(a, b *collation.Row) int { return order(a.Job, b.Job, a.GUID, b.GUID) }

func order(a, b journal.JobID, x, y journal.GUID) int {
	return cmp.Or(bytes.Compare(a[:], b[:]), bytes.Compare(x[:], y[:]))
}

func (w *twin) same(what string, pg, mem any) {
	w.Helper()
	if d := gocmp.Diff(pg, mem, alike); d != "" {
		w.Fatalf("%s: the answers differ (- postgres, + memory):\n%s", what, d)
	}
}

// kinds are the errors on which a caller decides.
var kinds = []error{
	store.ErrLost, store.ErrBusy, store.ErrUnavailable, store.ErrUnknown, store.ErrRejected, store.ErrStale, store.ErrLeased,
	store.ErrJobClosed, store.ErrExhausted, store.ErrNotFound, store.ErrVersionTaken, store.ErrSchema, errBody, errRefused,
}

var (
	errBody    = errors.New("the body's own error")
	errRefused = errors.New("a plan against the laws was refused")
)

// kind says what a caller can see of an error.
func kind(err error) (is []string) {
	if tx, ok := errors.AsType[*store.TxError](err); ok {
		is = append(is, fmt.Sprintf("%T", tx))
	}
	if lost, ok := errors.AsType[*store.LostError](err); ok && lost.Session {
		is = append(is, "of the session")
	}
	for _, k := range kinds {
		if errors.Is(err, k) {
			is = append(is, k.Error())
		}
	}
	if err != nil && is == nil {
		return []string{"another error"}
	}
	return is
}

// both makes one call of each store, and gives the answer of Postgres.
func both[T any](w *twin, what string, call func(s store.Store) (T, error)) (T, error) {
	w.Helper()
	x, xerr := call(w.Store)
	y, yerr := call(w.memory)
	return x, agree(w, what, x, y, xerr, yerr)
}

// agree holds two answers, or errors, and all rows to each other.
func agree[T any](w *twin, what string, pg, mem T, err, memErr error) error {
	w.Helper()
	err = agreeRead(w, what, pg, mem, err, memErr)
	w.tables(what)
	return err
}

// agreeRead is agree for what writes nothing.
func agreeRead[T any](w *twin, what string, pg, mem T, err, memErr error) error {
	w.Helper()
	w.Logf("%s: %v", what, err)
	if !slices.Equal(kind(err), kind(memErr)) {
		w.Fatalf("%s: the errors differ:\n  postgres %v\n  memory   %v", what, err, memErr)
	}
	if err == nil {
		w.same(what, pg, mem)
	}
	return err
}

// done is both for calls without an answer.
func (w *twin) done(what string, call func(store.Store) error) error {
	w.Helper()
	return agree(w, what, 0, 0, call(w.Store), call(w.memory))
}

// Committer implements store.Engine.
func (w *twin) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	pg, err := w.Store.Committer(ctx, patient)
	require.NoError(w, err)
	mem, err := w.memory.Committer(ctx, patient)
	require.NoError(w, err)
	return &committer{Committer: pg, loads: loads{w: w, pg: pg, mem: mem}, mem: mem}, nil
}

// loads is a transaction of both.
type loads struct {
	w       *twin
	pg, mem store.Tx
	body    bool // it is that of the end of a body
	loaded  [2]*store.Loaded
	read    map[journal.JobID][]collation.BoxWait // of boxes in Postgres, in all
	whole   map[journal.JobID][]collation.BoxWait // of boxes in memory
}

// Load implements store.Tx.
func (l *loads) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	out, err := l.pg.Load(ctx, wants, wait)
	mem, memErr := l.mem.Load(ctx, wants, wait)
	l.loaded = [2]*store.Loaded{out, mem}
	if l.body && err == nil && memErr == nil {
		for k, c := range out.Chains {
			if x := mem.Chains[k]; x != nil && c.Row == nil && x.Row == nil {
				mem.Chains[k] = c // the body is stale, whatever else is read of it
			}
		}
	}
	if err := agreeRead(l.w, "load", out, mem, err, memErr); err != nil {
		return nil, err
	}
	l.read, l.whole = map[journal.JobID][]collation.BoxWait{}, map[journal.JobID][]collation.BoxWait{}
	for id, box := range l.loaded[1].Boxes {
		l.whole[id] = slices.Clone(box.Waits)
	}
	for id := range l.whole {
		l.sees(id, 0)
	}
	return out, nil
}

// sees holds what was read of a mailbox, of which from are known, to the whole.
func (l *loads) sees(id journal.JobID, from int) {
	box := l.loaded[0].Boxes[id]
	l.read[id] = append(l.read[id], box.Waits[from:]...)
	n := min(len(l.read[id]), len(l.whole[id]))
	l.w.same("waits of a mailbox", l.read[id], l.whole[id][:n])
	if box.All && n < len(l.whole[id]) {
		l.w.Fatalf("mailbox %s has %d waits, and is said to have %d", id, len(l.whole[id]), n)
	}
}

// Commit implements store.Tx.
func (l *loads) Commit(ctx context.Context, plans []store.Chained) error {
	return agree(l.w, "commit", 0, 0, l.pg.Commit(ctx, plans), l.mem.Commit(ctx, plans))
}

// committer is one of each store.
type committer struct {
	store.Committer // of Postgres
	loads
	mem store.Committer
}

func (c *committer) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	return c.loads.Load(ctx, wants, wait)
}

func (c *committer) Commit(ctx context.Context, plans []store.Chained) error {
	last := plans[len(plans)-1].Plan
	if c.w.spoil == nil || last.Entry != nil && last.Entry.Kind == journal.KindCreated {
		return c.loads.Commit(ctx, plans)
	}
	c.w.spoil(last)
	c.w.spoil = nil
	refused := func(err error) error {
		if errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrRejected) {
			return errRefused // which of the two is not part of the contract for plans against the laws
		}
		return err
	}
	return agree(c.w, "commit of a falsified plan", 0, 0, refused(c.pg.Commit(ctx, plans)), refused(c.loads.mem.Commit(ctx, plans)))
}

// More implements store.Committer. What the plans so far made of the state of
// Postgres is made of the other before.
func (c *committer) More(ctx context.Context, needs map[journal.JobID]*collation.Need) error {
	from := map[journal.JobID]int{}
	for id, need := range needs {
		if need.Further > 0 {
			from[id] = len(c.loaded[0].Boxes[id].Waits)
			continue
		}
		st := *c.loaded[0].States[id]
		st.Instances, st.Receipts, st.Rows, st.Results = maps.Clone(st.Instances), maps.Clone(st.Receipts), maps.Clone(st.Rows), maps.Clone(st.Results)
		st.Unfinished, st.Record, st.Waits, st.Latest = maps.Clone(st.Unfinished), maps.Clone(st.Record), maps.Clone(st.Waits), maps.Clone(st.Latest)
		st.Keys = maps.Clone(st.Keys)
		*c.loaded[1].States[id] = st
	}
	err := agreeRead(c.w, "more", 0, 0, c.Committer.More(ctx, needs), c.mem.More(ctx, needs))
	for id := range needs {
		if n, further := from[id]; further && err == nil {
			c.sees(id, n)
		} else if err == nil {
			c.w.same("more", c.loaded[0].States[id], c.loaded[1].States[id])
		}
	}
	return err
}

func (c *committer) Rollback(ctx context.Context) error {
	return errors.Join(c.Committer.Rollback(ctx), c.mem.Rollback(ctx))
}

func (c *committer) Close() {
	c.Committer.Close()
	c.mem.Close()
}

// Body implements store.Bodies: that of Postgres runs where the other's has ended,
// and its end is that of both.
func (w *twin) Body(
	ctx context.Context, job journal.JobID, key journal.Digest, call store.TxCall, end func(context.Context, store.Tx, store.TxEnd) error,
) (*store.EffectRow, error) {
	var stood *store.EffectRow
	var err error
	ended := false
	mem, memErr := w.memory.Body(ctx, job, key, call, func(ctx context.Context, mem store.Tx, _ store.TxEnd) error {
		stood, err = w.Store.Body(ctx, job, key, call, func(ctx context.Context, pg store.Tx, with store.TxEnd) error {
			return end(ctx, &loads{w: w, pg: pg, mem: mem, body: true}, with)
		})
		ended = true
		return err
	})
	if !ended {
		stood, err = w.Store.Body(ctx, job, key, call, func(context.Context, store.Tx, store.TxEnd) error {
			w.Fatalf("a body came to its end in Postgres only")
			return nil
		})
	}
	return stood, agree(w, "body", stood, mem, err, memErr)
}

// Lease implements store.Requests.
func (w *twin) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	return both(w, "lease", func(s store.Store) (store.Lease, error) { return s.Lease(ctx, job, request, turn, holder, session) })
}
