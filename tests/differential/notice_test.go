package differential

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

// wrong takes the place of the memory store and does one thing wrong, in what the
// call that is drawn often asks for.
type wrong struct {
	spoil func(store.Store) store.Store
	often func(*pair)
}

var wrongs = map[string]wrong{
	"a due row is not listed":              {func(s store.Store) store.Store { return due{s} }, (*pair).work},
	"a claim is answered and not written":  {func(s store.Store) store.Store { return claim{s} }, (*pair).work},
	"a key that is taken has another job":  {func(s store.Store) store.Store { return taken{s} }, (*pair).start},
	"a commit that is lost is none":        {func(s store.Store) store.Store { return committers{s, swallow} }, (*pair).spoilt},
	"a commit is forgotten":                {func(s store.Store) store.Store { return committers{s, forget} }, (*pair).work},
	"a load sees another semaphore":        {func(s store.Store) store.Store { return committers{s, miscount} }, (*pair).work},
	"a lease has another fence":            {func(s store.Store) store.Store { return fence{s} }, (*pair).worker},
	"a signal is new each time":            {func(s store.Store) store.Store { return committers{s, forgetful} }, (*pair).signal},
	"a signal stays a little longer":       {func(s store.Store) store.Store { return committers{s, lengthen} }, (*pair).signal},
	"an interrupt is of another entry":     {func(s store.Store) store.Store { return committers{s, elsewhere} }, (*pair).stop},
	"an effect is of another number":       {func(s store.Store) store.Store { return committers{s, renumber} }, (*pair).worker},
	"an outcome is refused":                {func(s store.Store) store.Store { return committers{s, refuse} }, (*pair).worker},
	"a payload is not stored":              {func(s store.Store) store.Store { return committers{s, unkept} }, (*pair).worker},
	"an operator's action does nothing":    {func(s store.Store) store.Store { return committers{s, inert} }, (*pair).operate},
	"an expired job stays":                 {func(s store.Store) store.Store { return stays{s} }, (*pair).sweep},
	"a byte of an entry is another":        {func(s store.Store) store.Store { return flipped{s} }, (*pair).ask},
	"what has ended has not, for a client": {func(s store.Store) store.Store { return ended{s} }, (*pair).ask},
	"a job ended without its output":       {func(s store.Store) store.Store { return silent{s} }, (*pair).work},
}

// spoilt gives a response with a plan against the laws.
func (p *pair) spoilt() {
	if r, ok := recent(p, "row", p.rows("")); ok && r.Job != (journal.JobID{}) {
		p.batch([]*collation.Message{journaltest.Message(&r)}, "semaphore before")
	}
}

// patience is how often as many sequences are drawn as in a run, until a wrong is
// noticed: most are in the first sequence.
const patience = 20

// A difference does not go unnoticed.
func TestDifferencesAreNoticed(t *testing.T) {
	t.Parallel()
	db := openDatabase(t)
	for _, name := range sorted(wrongs) {
		t.Run(name, func(t *testing.T) { // one after the other: they share the database
			found := ""
			for range patience {
				rapid.Check(t, func(r *rapid.T) {
					if found == "" {
						found = noticed(t.Context(), r, db, wrongs[name])
					}
				})
			}
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}

// noticed draws a sequence and gives the difference that it shows.
func noticed(ctx context.Context, r *rapid.T, db *database, w wrong) (found string) {
	p := newPair(ctx, r, db, w.spoil)
	p.often = w.often
	defer p.close()
	defer func() {
		switch v := recover().(type) {
		case nil:
		case difference:
			found = string(v)
		default:
			panic(v)
		}
	}()
	p.sequence()
	return ""
}

type due struct{ store.Store }

func (s due) Due(ctx context.Context, limit int) ([]store.DueRow, time.Duration, error) {
	rows, overdue, err := s.Store.Due(ctx, limit)
	return rows[:max(len(rows)-1, 0)], overdue, err
}

type claim struct{ store.Store }

func (s claim) Claim(context.Context, []store.Claim) ([]store.Outgoing, error) { return nil, nil }

type taken struct{ store.Store }

func (s taken) FindJob(ctx context.Context, key string) (journal.JobID, error) {
	id, err := s.Store.FindJob(ctx, key)
	id[0]++
	return id, err
}

// committers gives committers that do something wrong.
type committers struct {
	store.Store
	wrong func(store.Committer) store.Committer
}

func (s committers) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	c, err := s.Store.Committer(ctx, true)
	return s.wrong(c), err
}

type swallower struct{ store.Committer }

func swallow(c store.Committer) store.Committer { return swallower{c} }

func (c swallower) Commit(ctx context.Context, plans []store.Chained) error {
	if err := c.Committer.Commit(ctx, plans); !errors.Is(err, store.ErrLost) {
		return err
	}
	return nil
}

type forgetter struct{ store.Committer }

func forget(c store.Committer) store.Committer { return forgetter{c} }

func (c forgetter) Commit(ctx context.Context, _ []store.Chained) error { return c.Rollback(ctx) }

type miscounter struct{ store.Committer }

func miscount(c store.Committer) store.Committer { return miscounter{c} }

func (c miscounter) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	l, err := c.Committer.Load(ctx, wants, wait)
	if err == nil {
		for _, st := range l.States {
			st.Job.Semaphore++
		}
	}
	return l, err
}

type fence struct{ store.Store }

func (s fence) Lease(ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, ttl time.Duration) (store.Lease, error) {
	l, err := s.Store.Lease(ctx, job, request, turn, holder, ttl)
	l.Fence++
	return l, err
}

type unknown struct{ store.Committer }

func forgetful(c store.Committer) store.Committer { return unknown{c} }

func (c unknown) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	l, err := c.Committer.Load(ctx, wants, wait)
	if err == nil {
		clear(l.Known)
	}
	return l, err
}

type longer struct{ store.Committer }

func lengthen(c store.Committer) store.Committer { return longer{c} }

func (c longer) Commit(ctx context.Context, plans []store.Chained) error {
	for _, p := range plans {
		for i := range p.Plan.Insert {
			if r := &p.Plan.Insert[i]; r.Held == collation.HeldKept {
				r.WithinAt++
			}
		}
	}
	return c.Committer.Commit(ctx, plans)
}

type wanderer struct{ store.Committer }

func elsewhere(c store.Committer) store.Committer { return wanderer{c} }

func (c wanderer) Commit(ctx context.Context, plans []store.Chained) error {
	for i := range plans {
		for n := range plans[i].Plan.Insert {
			if row := &plans[i].Plan.Insert[n]; row.Kind == journal.MessageInterrupt {
				row.Origin++
			}
		}
	}
	return c.Committer.Commit(ctx, plans)
}

type renumberer struct{ store.Committer }

func renumber(c store.Committer) store.Committer { return renumberer{c} }

func (c renumberer) Commit(ctx context.Context, plans []store.Chained) error {
	for i := range plans {
		if w := plans[i].Plan.Chain; w != nil {
			w.Effect.N++
		}
	}
	return c.Committer.Commit(ctx, plans)
}

type refuser struct{ store.Committer }

func refuse(c store.Committer) store.Committer { return refuser{c} }

func (c refuser) Commit(ctx context.Context, plans []store.Chained) error {
	for i := range plans {
		if w := plans[i].Plan.Chain; w != nil && w.Effect.State != store.EffectStarted {
			return errors.Join(store.ErrStale, c.Rollback(ctx))
		}
	}
	return c.Committer.Commit(ctx, plans)
}

// leaver leaves out the plans of which it is told.
type leaver struct {
	store.Committer
	out func(*collation.Plan) bool
}

func unkept(c store.Committer) store.Committer {
	return leaver{c, func(p *collation.Plan) bool { return p.Payload != nil }}
}

func inert(c store.Committer) store.Committer {
	return leaver{c, func(p *collation.Plan) bool { return len(p.Letters) > 0 }}
}

func (c leaver) Commit(ctx context.Context, plans []store.Chained) error {
	for i := range plans {
		if c.out(plans[i].Plan) {
			return c.Rollback(ctx)
		}
	}
	return c.Committer.Commit(ctx, plans)
}

type stays struct{ store.Store }

func (s stays) Expire(context.Context, int) (bool, error) { return false, nil }

type flipped struct{ store.Store }

func (s flipped) Audit(ctx context.Context, id journal.JobID, visit func(*store.Stored, iter.Seq2[journal.Record, error]) error) error {
	return s.Store.Audit(ctx, id, func(tables *store.Stored, records iter.Seq2[journal.Record, error]) error {
		return visit(tables, func(yield func(journal.Record, error) bool) {
			for r, err := range records {
				r.Body[len(r.Body)/2] ^= 1
				if !yield(r, err) {
					return
				}
			}
		})
	})
}

type ended struct{ store.Store }

func (s ended) Ended(ctx context.Context, ids []journal.JobID) (map[journal.JobID]bool, error) {
	out, err := s.Store.Ended(ctx, ids)
	for id := range out {
		out[id] = false
	}
	return out, err
}

type silent struct{ store.Store }

func (s silent) Outcomes(ctx context.Context, ids []journal.JobID) (map[journal.JobID]store.Outcome, error) {
	out, err := s.Store.Outcomes(ctx, ids)
	for id, o := range out {
		o.Output = nil
		out[id] = o
	}
	return out, err
}
