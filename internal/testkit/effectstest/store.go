package effectstest

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// Store is a store.Worker over a store in memory, in which each request has a job of its own. It is safe for concurrent
// use.
type Store struct {
	// Fault is called before each operation with the name of its method; an error is
	// returned instead of the operation. Set it before the first use.
	Fault func(op string) error

	memory *memstore.Store
	worker journaltest.Driven // on memory

	mu    sync.Mutex
	jobs  map[journal.GUID]journal.JobID // by request
	calls []string
}

// New is an empty store. Sessions 1 and 2 are there, and stay.
func New() *Store {
	s := &Store{memory: memstore.New(memstore.Config{}), jobs: map[journal.GUID]journal.JobID{}}
	s.worker = journaltest.Driven{Store: s.memory}
	for range 2 {
		if _, err := s.memory.OpenSession(context.Background(), store.Process{Lease: time.Hour}); err != nil {
			panic(err)
		}
	}
	return s
}

// Put adds the row of a request, at turn 1, with its job.
func (s *Store) Put(job journal.JobID, id journal.GUID, input []byte) {
	s.mu.Lock()
	s.jobs[id] = job
	s.mu.Unlock()
	s.decide(store.Want{Key: job.String()}, func(*store.Loaded) *collation.Plan {
		p := entered(collation.Job{ID: job, Generation: 1}, journal.KindCreated)
		p.Entry.Key, p.Entry.Flow = job.String(), &journal.FlowRef{Name: "flow", Version: "1"}
		p.Semaphore.After = 1
		p.Insert = []collation.Row{
			{
				GUID:    id,
				Job:     job,
				Kind:    journal.MessageRequest,
				Request: collation.Request{Turn: 1, Attempt: 1},
				Body:    input,
			},
		}
		return p
	})
}

// entered is a plan that writes an entry, and no more.
func entered(job collation.Job, kind journal.Kind) *collation.Plan {
	return &collation.Plan{
		Job: job.ID, Outcome: collation.Handled, Done: true,
		Semaphore: journal.SemaphoreMove{Before: job.Semaphore, After: job.Semaphore},
		Entry: &journal.Entry{
			Space: job.Space, Job: job.ID, Generation: job.Generation, Seq: job.Head.Seq + 1, Kind: kind,
			Operator: &journal.Operator{Action: "test"},
		},
	}
}

// decide commits a plan. It cannot fail.
func (s *Store) decide(want store.Want, how func(*store.Loaded) *collation.Plan) {
	err := s.worker.Decide(context.Background(), want,
		func(l *store.Loaded) (*collation.Plan, *collation.Need, error) { return how(l), nil, nil })
	if err != nil {
		panic(err)
	}
}

// job is that of a request; zero: there is none.
func (s *Store) job(id journal.GUID) journal.JobID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[id]
}

// row is the row of a request; nil: it has ended.
func (s *Store) row(id journal.GUID) *collation.Row {
	return s.memory.Peek(s.job(id), id, journal.GUID{}).Row
}

// change commits what an engine does to the row of a request, if it is there.
func (s *Store) change(id journal.GUID, how func(row *collation.Row, p *collation.Plan)) {
	job := s.job(id)
	s.decide(store.Want{Job: job, Row: id}, func(l *store.Loaded) *collation.Plan {
		st := l.States[job]
		if st == nil || st.Rows[id] == nil {
			return nil
		}
		p, row := entered(st.Job, journal.KindOperator), *st.Rows[id]
		row.Rev++
		if how(&row, p); len(p.Delete) == 0 {
			p.Update = []collation.Row{row}
		}
		return p
	})
}

// Expire ends the session of the run that has a request, as after a crash.
func (s *Store) Expire(id journal.GUID) {
	s.change(id, func(r *collation.Row, _ *collation.Plan) {
		if r.Holder != "" {
			r.Fence++
			r.Holder, r.Session = "", 0
		}
	})
}

// Answer ends a request: its row is deleted.
func (s *Store) Answer(id journal.GUID) {
	s.change(id, func(_ *collation.Row, p *collation.Plan) { p.Delete = []journal.GUID{id} })
}

// Turn gives a request its next turn, as a failed attempt does.
func (s *Store) Turn(id journal.GUID) {
	s.change(id, func(r *collation.Row, _ *collation.Plan) { next(r) })
}

func next(r *collation.Row) { r.Turn, r.Holder, r.Session, r.Runs = r.Turn+1, "", 0, 0 }

// closed is the digits of the receipt of a message that closes a job.
const closed = 111_000_000_000

// CloseJob closes the job of a request.
func (s *Store) CloseJob(id journal.GUID) {
	s.change(id, func(_ *collation.Row, p *collation.Plan) {
		p.Semaphore.After, p.NewState, p.Close = 0, journal.JobInterrupted, &journal.Close{}
		p.Receipt = &collation.ReceiptWrite{
			GUID: id, New: true, After: closed, Closes: true, Verdict: journal.VerdictHandled, Seq: p.Entry.Seq,
		}
	})
}

// Suspend records the suspension of a request: the next turn, and the pauses it waits
// for. Of the earlier pauses only those that have come remain.
func (s *Store) Suspend(id journal.GUID, pauses []wire.Pause) {
	s.change(id, func(r *collation.Row, _ *collation.Plan) {
		next(r)
		r.Pauses = nil
		for _, p := range pauses {
			ref := journal.PauseRef{Kind: p.Kind, Name: p.Name, Position: p.Position}
			r.Pauses = append(r.Pauses, collation.Pause{PauseRef: ref})
		}
	})
}

// Wake brings the response to a pause of the request; false if the request does not wait
// for it.
func (s *Store) Wake(id journal.GUID, kind journal.PauseKind, name string, response *journal.Response) bool {
	pauses := s.Waits(id)
	at := slices.IndexFunc(pauses, func(p store.Pause) bool {
		return p.Kind == kind && p.Name == name && p.Response == nil
	})
	if at < 0 {
		return false
	}
	s.change(id, func(_ *collation.Row, p *collation.Plan) {
		p.Entry.Response = response
		p.ResolvedWait = &collation.ResolvedWait{
			Request: id, GUID: collation.ResponseGUID(id, int(p.Entry.Seq)), PauseRef: pauses[at].PauseRef,
			Seq: p.Entry.Seq,
		}
	})
	return true
}

// Decide changes the recorded state of an effect of a request, as an operator's
// decision does (E10).
func (s *Store) Decide(id journal.GUID, key journal.Digest, f func(*store.EffectRow)) {
	of := collation.RowKey{Job: s.job(id), GUID: id}
	s.decide(store.Want{Job: of.Job, Chain: of, Effects: []journal.Digest{key}}, func(l *store.Loaded) *collation.Plan {
		was := l.Chains[of].Effects[key]
		is := *was
		if f(&is.EffectRow); reflect.DeepEqual(is, *was) {
			return nil
		}
		p := entered(l.States[of.Job].Job, journal.KindOperator)
		p.Chain = &collation.ChainWrite{Request: id, Completed: was.State == store.EffectCompleted, Effect: is}
		return p
	})
}

// Rows are the recorded effects of a request, in the order of their first entries.
func (s *Store) Rows(id journal.GUID) []store.EffectRow {
	rows, err := s.memory.Effects(context.Background(), s.job(id), id)
	if err != nil {
		panic(err)
	}
	return rows
}

// Waits are the pauses of a request, as store.Worker lists them.
func (s *Store) Waits(id journal.GUID) []store.Pause {
	pauses, err := s.memory.Pauses(context.Background(), s.job(id), id)
	if err != nil {
		panic(err)
	}
	return pauses
}

// Leased reports the runs of a request, and whether one of them has it.
func (s *Store) Leased(id journal.GUID) (runs int, live bool) {
	row := s.row(id)
	return row.Runs, row.Holder != ""
}

// Payload is an output that was stored of a job, by its digest; nil: it was not.
func (s *Store) Payload(job journal.JobID, digest journal.Digest) (body []byte) {
	err := s.memory.Audit(context.Background(), job,
		func(x *store.Stored, _ iter.Seq2[journal.Record, error]) error {
			for a := range x.Attachments {
				if a.Digest == digest {
					body = a.Body
				}
			}
			return nil
		})
	if err != nil {
		panic(err)
	}
	return body
}

// Calls are the names of the operations so far, in order.
func (s *Store) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// begin notes an operation, which may fail.
func (s *Store) begin(ctx context.Context, op string) error {
	s.mu.Lock()
	s.calls = append(s.calls, op)
	fault := s.Fault
	s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if fault != nil {
		return fault(op)
	}
	return nil
}
