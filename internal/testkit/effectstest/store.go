package effectstest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Store is a store.Worker in memory, in which package collation decides on effects. It is safe for
// concurrent use.
type Store struct {
	// Fault is called before each operation with the name of its method; an error is
	// returned instead of the operation. Set it before the first use.
	Fault func(op string) error

	mu       sync.Mutex
	requests map[journal.GUID]*request
	payloads map[journal.Digest][]byte
	calls    []string
}

var _ store.Worker = (*Store)(nil)

// request is a request with its effects. Its row is nil when it has ended.
type request struct {
	collation.Chain
	pauses []store.Pause // those that have come stand first, in the order in which they came
	came   int64
}

// New is an empty store.
func New() *Store {
	return &Store{requests: make(map[journal.GUID]*request), payloads: make(map[journal.Digest][]byte)}
}

// Put adds the row of a request, at turn 1.
func (s *Store) Put(id journal.GUID, input []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[id] = &request{Chain: collation.Chain{
		Job: collation.Job{State: journal.JobOpen}, Request: id, Effects: make(map[journal.Digest]*collation.Effect),
		Row: &collation.Row{GUID: id, Kind: journal.MessageRequest, Turn: 1, Body: input},
	}}
}

// Expire ends the session of the run that has a request, as after a crash.
func (s *Store) Expire(id journal.GUID) {
	s.change(id, func(r *request) {
		if r.Row != nil && r.Row.Holder != "" {
			r.Row.Fence++
			r.Row.Holder = ""
		}
	})
}

// Answer ends a request: its row is deleted.
func (s *Store) Answer(id journal.GUID) { s.change(id, func(r *request) { r.Row = nil }) }

// Turn gives a request its next turn, as a failed attempt does.
func (s *Store) Turn(id journal.GUID) { s.change(id, (*request).next) }

func (r *request) next() { r.Row.Turn, r.Row.Holder, r.Row.Runs = r.Row.Turn+1, "", 0 }

// CloseJob closes the job of a request.
func (s *Store) CloseJob(id journal.GUID) {
	s.change(id, func(r *request) { r.Job.State = journal.JobInterrupted })
}

// Rows are the recorded effects of a request, in the order of their first entries.
func (s *Store) Rows(id journal.GUID) (rows []store.EffectRow) {
	s.change(id, func(r *request) {
		for _, f := range slices.SortedFunc(maps.Values(r.Chain.Effects), func(a, b *collation.Effect) int {
			return cmp.Compare(a.Seq, b.Seq)
		}) {
			row := f.EffectRow
			row.Live = row.State == store.EffectStarted && r.Row != nil && r.Row.Holder == row.Holder &&
				r.Row.Fence == row.Fence
			rows = append(rows, row)
		}
	})
	return rows
}

// Waits are the pauses of a request, as store.Worker lists them.
func (s *Store) Waits(id journal.GUID) (pauses []store.Pause) {
	s.change(id, func(r *request) { pauses = slices.Clone(r.pauses) })
	return pauses
}

// Suspend records the suspension of a request: the next turn, and the pauses it waits
// for. Of the earlier pauses only those that have come remain.
func (s *Store) Suspend(id journal.GUID, pauses []wire.Pause) {
	s.change(id, func(r *request) {
		r.next()
		r.pauses = slices.DeleteFunc(r.pauses, func(p store.Pause) bool { return p.Response == nil })
		for _, p := range pauses {
			ref := journal.PauseRef{Kind: p.Kind, Name: p.Name, Position: p.Position}
			if !slices.ContainsFunc(r.pauses, func(x store.Pause) bool { return x.PauseRef == ref }) {
				r.pauses = append(r.pauses, store.Pause{PauseRef: ref})
			}
		}
	})
}

// Wake brings the response to a pause of the request; false if the request does not wait
// for it.
func (s *Store) Wake(id journal.GUID, kind journal.PauseKind, name string, response *journal.Response) (woken bool) {
	s.change(id, func(r *request) {
		at := slices.IndexFunc(r.pauses, func(p store.Pause) bool {
			return p.Kind == kind && p.Name == name && p.Response == nil
		})
		if at < 0 {
			return
		}
		p := r.pauses[at]
		r.came++
		p.Seq, p.Response = r.came, response
		r.pauses = slices.Insert(slices.Delete(r.pauses, at, at+1), int(r.came)-1, p)
		woken = true
	})
	return woken
}

// Leased reports the runs of a request, and whether one of them has it.
func (s *Store) Leased(id journal.GUID) (runs int, live bool) {
	s.change(id, func(r *request) { runs, live = r.Row.Runs, r.Row.Holder != "" })
	return runs, live
}

// Payload is a payload that was stored, by its digest.
func (s *Store) Payload(d journal.Digest) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payloads[d]
}

// Calls are the names of the operations so far, in order.
func (s *Store) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// change does something with a request, if there is one.
func (s *Store) change(id journal.GUID, f func(*request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.requests[id]; r != nil {
		f(r)
	}
}

func (s *Store) begin(ctx context.Context, op string) error {
	s.mu.Lock()
	s.calls = append(s.calls, op)
	s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if s.Fault != nil {
		return s.Fault(op)
	}
	return nil
}

// on does an operation on a request: store.ErrStale without one.
func (s *Store) on(ctx context.Context, op string, id journal.GUID, do func(*request) error) error {
	err := s.begin(ctx, op)
	if err == nil {
		err = store.ErrStale
		s.change(id, func(r *request) { err = do(r) })
	}
	return err
}

// asked says that the request is in that turn.
func (r *request) asked(turn int) bool { return r.Row != nil && r.Row.Turn == turn }

// take gives the request to a run.
func (r *request) take(holder string) {
	r.Row.Runs++
	r.Row.Fence++
	r.Row.Holder = holder
}

// Lease implements store.Worker.
func (s *Store) Lease(
	ctx context.Context, job journal.JobID, id journal.GUID, turn int, holder string, session int64,
) (l store.Lease, err error) {
	err = s.on(ctx, "Lease", id, func(r *request) error {
		switch {
		case !r.asked(turn):
			return store.ErrStale
		case r.Row.Holder != "" && r.Row.Holder != holder:
			return store.ErrLeased
		case r.Row.Runs >= store.MaxRuns:
			return store.ErrExhausted
		}
		r.take(holder)
		l = store.Lease{
			Job: job, Request: id, Turn: turn, Holder: holder, Session: session, Fence: r.Row.Fence, Runs: r.Row.Runs,
		}
		return nil
	})
	return l, err
}

// Keep implements store.Worker.
func (s *Store) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	err := s.on(ctx, "Keep", l.Request, func(r *request) error {
		switch {
		case !r.asked(l.Turn):
			return store.ErrStale
		case r.Job.State.Closed():
			return store.ErrJobClosed
		case l.Fresh && r.Row.Fence == l.Fence+1 && r.Row.Holder == l.Holder:
		case r.Row.Fence != l.Fence || r.Row.Holder != "" && r.Row.Holder != l.Holder:
			return store.ErrStale
		case r.Row.Holder == "":
			r.take(l.Holder)
		}
		l.Fence, l.Runs, l.Fresh = r.Row.Fence, r.Row.Runs, false
		return nil
	})
	return l, err
}

// HandBack implements store.Worker.
func (s *Store) HandBack(ctx context.Context, l store.Lease) error {
	return s.on(ctx, "HandBack", l.Request, func(r *request) error {
		if !r.asked(l.Turn) || r.Row.Holder != l.Holder {
			return store.ErrStale
		}
		r.Row.Holder, r.Row.Runs = "", max(0, r.Row.Runs-1)
		r.Row.Fence++
		return nil
	})
}

// Input implements store.Worker.
func (s *Store) Input(ctx context.Context, _ journal.JobID, id journal.GUID) (input []byte, err error) {
	err = s.on(ctx, "Input", id, func(r *request) error {
		if r.Row == nil {
			return store.ErrStale
		}
		input = r.Row.Body
		return nil
	})
	return input, err
}

// PutPayload implements store.Worker.
func (s *Store) PutPayload(ctx context.Context, _ journal.JobID, d journal.Digest, body []byte) error {
	if err := s.begin(ctx, "PutPayload"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payloads[d] = slices.Clone(body)
	return nil
}
