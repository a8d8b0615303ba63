package effectstest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// Store is a store.Worker in memory. It is safe for concurrent use.
type Store struct {
	// Fault is called before each operation with the name of its method; an error is
	// returned instead of the operation. Set it before the first use.
	Fault func(op string) error

	mu       sync.Mutex
	rows     map[journal.GUID]*request
	payloads map[journal.Digest][]byte
	calls    []string
}

var _ store.Worker = (*Store)(nil)

type request struct {
	turn, runs int
	fence      int64
	holder     string
	live       bool // holder has the request
	gone       bool
	closed     bool
	input      []byte
	effects    []store.EffectRow
	byKey      map[journal.Digest]int
	pauses     []store.Pause // those that have come stand first, in the order in which they came
	came       int64
}

// New is an empty store.
func New() *Store {
	return &Store{rows: make(map[journal.GUID]*request), payloads: make(map[journal.Digest][]byte)}
}

// Put adds the row of a request, at turn 1.
func (s *Store) Put(id journal.GUID, input []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[id] = &request{turn: 1, input: input, byKey: make(map[journal.Digest]int)}
}

// Expire ends the session of the run that has a request, as after a crash.
func (s *Store) Expire(id journal.GUID) {
	s.change(id, func(r *request) {
		if r.live {
			r.fence++
		}
		r.live = false
	})
}

// Answer ends a request: its row is deleted.
func (s *Store) Answer(id journal.GUID) { s.change(id, func(r *request) { r.gone = true }) }

// Turn gives a request its next turn, as a failed attempt does.
func (s *Store) Turn(id journal.GUID) {
	s.change(id, func(r *request) { r.turn, r.live, r.runs = r.turn+1, false, 0 })
}

// CloseJob closes the job of a request.
func (s *Store) CloseJob(id journal.GUID) { s.change(id, func(r *request) { r.closed = true }) }

// Rows are the recorded effects of a request.
func (s *Store) Rows(id journal.GUID) []store.EffectRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[id] == nil {
		return nil
	}
	return slices.Clone(s.rows[id].effects)
}

// Waits are the pauses of a request, as store.Worker lists them.
func (s *Store) Waits(id journal.GUID) []store.Pause {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[id] == nil {
		return nil
	}
	return slices.Clone(s.rows[id].pauses)
}

// Suspend records the suspension of a request: the next turn, and the pauses it waits
// for. Of the earlier pauses only those that have come remain.
func (s *Store) Suspend(id journal.GUID, pauses []wire.Pause) {
	s.change(id, func(r *request) {
		r.turn, r.live, r.runs = r.turn+1, false, 0
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
		at := slices.IndexFunc(r.pauses, func(p store.Pause) bool { return p.Kind == kind && p.Name == name && p.Response == nil })
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

// Leased reports holder and runs of a request, and whether its lease is alive.
func (s *Store) Leased(id journal.GUID) (holder string, runs int, live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[id]
	return r.holder, r.runs, r.live
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

func (s *Store) change(id journal.GUID, f func(*request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.rows[id])
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

// row is the row that a write of this turn may change; the caller holds mu.
func (s *Store) row(id journal.GUID, turn int) (*request, error) {
	r := s.rows[id]
	if r == nil || r.gone || r.turn != turn {
		return nil, store.ErrStale
	}
	return r, nil
}

// Lease implements store.Worker.
func (s *Store) Lease(ctx context.Context, job journal.JobID, id journal.GUID, turn int, holder string, session int64) (store.Lease, error) {
	if err := s.begin(ctx, "Lease"); err != nil {
		return store.Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.row(id, turn)
	if err != nil {
		return store.Lease{}, err
	}
	if r.live && r.holder != holder {
		return store.Lease{}, store.ErrLeased
	}
	if r.runs >= store.MaxRuns {
		return store.Lease{}, store.ErrExhausted
	}
	r.take(holder)
	return store.Lease{Job: job, Request: id, Turn: turn, Holder: holder, Session: session, Fence: r.fence, Runs: r.runs}, nil
}

// Keep implements store.Worker.
func (s *Store) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	if err := s.begin(ctx, "Keep"); err != nil {
		return l, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.row(l.Request, l.Turn)
	switch {
	case err != nil:
		return l, err
	case r.closed:
		return l, store.ErrJobClosed
	case l.Fresh && r.fence == l.Fence+1 && r.live && r.holder == l.Holder:
		l.Fence = r.fence
	case r.fence != l.Fence || r.live && r.holder != l.Holder:
		return l, store.ErrStale
	case !r.live:
		r.take(l.Holder)
		l.Fence = r.fence
	}
	l.Runs, l.Fresh = r.runs, false
	return l, nil
}

// take gives the request to a run; the caller holds mu.
func (r *request) take(holder string) {
	r.runs++
	r.fence++
	r.holder, r.live = holder, true
}

// HandBack implements store.Worker.
func (s *Store) HandBack(ctx context.Context, l store.Lease) error {
	if err := s.begin(ctx, "HandBack"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.row(l.Request, l.Turn)
	if err != nil || !r.live || r.holder != l.Holder {
		return store.ErrStale
	}
	r.live, r.runs = false, max(0, r.runs-1)
	return nil
}

// Input implements store.Worker.
func (s *Store) Input(ctx context.Context, _ journal.JobID, id journal.GUID) ([]byte, error) {
	if err := s.begin(ctx, "Input"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rows[id]; r != nil && !r.gone {
		return r.input, nil
	}
	return nil, store.ErrNotFound
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
