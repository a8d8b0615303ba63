package differential

import (
	"cmp"
	"flag"
	"iter"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/tests/guarantees"
)

// sequences names the variable that says how many are drawn instead of few.
const sequences = "QUIPU_DIFFERENTIAL"

// few is how many sequences are drawn where nobody says; steps is how many calls a
// sequence has on the average, not counting those that follow from another.
const (
	few   = "12"
	steps = "60"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": cmp.Or(os.Getenv(sequences), few), "rapid.steps": steps} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	devtest.Main(m)
}

// Postgres and memory give the same rows and the same errors, whatever they are
// asked for (the contract of journal/store).
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	db := openDatabase(t)
	end, played := guarantees.Begin(), 0
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay it, with the seed that is printed above: go test ./tests/differential -run '^%s$' -rapid.seed=<seed>", t.Name())
		}
		d := guarantees.Differential{Run: end(), Sequences: played, Failed: t.Failed()}
		d.Steps, _ = strconv.Atoi(steps)
		require.NoError(t, guarantees.Record(guarantees.NameDifferential, d))
	})
	all := drawn{}
	rapid.Check(t, func(r *rapid.T) {
		played++
		p := newPair(t.Context(), r, db, nil)
		defer p.close()
		p.drawn = all
		p.sequence()
	})
	all.report(t)
}

// sequence draws calls, and holds the stores to each other.
func (p *pair) sequence() {
	p.builtins()
	for _, name := range []string{"first", "second"} {
		p.define(name)
	}
	p.start()
	p.Repeat(map[string]func(*rapid.T){"step": p.step})
	p.compare()
}

// step makes one call, or those that belong together.
func (p *pair) step(t *rapid.T) {
	defer func(outer *rapid.T) { p.T = outer }(p.T)
	p.T = t
	p.advance(pick[time.Duration](p, "passes", 1, 1, 1000, 1_000_000) * time.Microsecond)
	if p.often != nil && p.chance("often", 50) {
		p.often(p)
		return
	}
	calls := []struct {
		weight int
		call   func()
	}{
		{40, p.work},
		{8, p.again},
		{8, p.several},
		{6, p.start},
		{8, p.signal},
		{18, p.worker},
		{6, p.operate},
		{3, p.stop},
		{8, p.sweep},
		{5, p.ask},
		{5, p.answer},
		{3, func() { p.advance(pick[time.Duration](p, "long", 60, 3600, 90_000, 31*86_400) * second) }},
		{2, p.deployment},
		{1, p.replace},
	}
	sum := 0
	for _, c := range calls {
		sum += c.weight
	}
	at := p.upTo("call", sum-1)
	for _, c := range calls {
		if at -= c.weight; at < 0 {
			c.call()
			return
		}
	}
}

// answer gives a response to a request, whether it is due or not.
func (p *pair) answer() {
	if r, ok := p.anyRequest(); ok {
		p.respond(&r)
	}
}

// replace ends a committer's session and opens another.
func (p *pair) replace() {
	at := p.upTo("hand", len(p.hands)-1)
	for _, c := range p.hands[at] {
		c.Close()
	}
	p.hands[at] = p.open()
}

// stored is all that Audit gives of a job.
type stored struct {
	Tables  *store.Stored
	Records []journal.Record
}

func (p *pair) audit(s store.Store, id journal.JobID) (out stored, err error) {
	err = s.Audit(p.ctx, id, func(tables *store.Stored, records iter.Seq2[journal.Record, error]) error {
		out.Tables = tables
		for r, err := range records {
			if err != nil {
				return err
			}
			r.Body = slices.Clone(r.Body)
			out.Records = append(out.Records, r)
		}
		return nil
	})
	return out, err
}

// compare holds all to each other that can be observed.
func (p *pair) compare() {
	p.due()
	p.letters()
	_, _ = both(p, "counts", func(_ int, s store.Store) (map[journal.JobState]int64, error) { return s.Counts(p.ctx) })
	_, _ = both(p, "flows", func(_ int, s store.Store) ([]store.FlowView, error) { return s.Flows(p.ctx) })
	_, _ = both(p, "schedules", func(_ int, s store.Store) ([]store.Schedule, error) { return s.Schedules(p.ctx) })
	jobs, err := both(p, "jobs", func(_ int, s store.Store) ([]store.JobSummary, error) {
		return p.list(s, store.JobFilter{Limit: store.MaxPage})
	})
	require.NoError(p, err)
	ids, err := both(p, "audited jobs", func(_ int, s store.Store) (out []journal.JobID, err error) {
		for id, err := range s.AuditJobs(p.ctx, nil) {
			if err != nil {
				return nil, err
			}
			out = append(out, id)
		}
		return out, nil
	})
	require.NoError(p, err)
	for i := range jobs {
		if !slices.Contains(ids, jobs[i].ID) {
			p.differ("job %s is listed, and not audited", jobs[i].ID)
		}
	}
	for _, id := range ids {
		p.compareJob(id)
	}
}

func (p *pair) compareJob(id journal.JobID) {
	v, err := both(p, "job", func(_ int, s store.Store) (*store.JobView, error) { return p.view(s, id) })
	_, _ = both(p, "audit", func(_ int, s store.Store) (stored, error) { return p.audit(s, id) })
	_, _ = both(p, "effects of job", func(_ int, s store.Store) ([]store.JobEffect, error) { return s.JobEffects(p.ctx, id) })
	_, _ = both(p, "ended", func(_ int, s store.Store) (map[journal.JobID]bool, error) {
		return s.Ended(p.ctx, []journal.JobID{id, {8: 9}})
	})
	_, _ = both(p, "outcomes", func(_ int, s store.Store) (map[journal.JobID]store.Outcome, error) {
		return s.Outcomes(p.ctx, []journal.JobID{id, {8: 9}})
	})
	if err != nil {
		return
	}
	for i := range v.Rows {
		p.compareRequest(v.Rows[i].Job, v.Rows[i].GUID)
	}
}

func (p *pair) list(s store.Store, f store.JobFilter) ([]store.JobSummary, error) {
	out, err := s.Jobs(p.ctx, f)
	return cursorless(out), err
}

// cursorless takes the cursors away, which each store spells as it likes.
func cursorless(list []store.JobSummary) []store.JobSummary {
	for i := range list {
		list[i].Cursor = ""
	}
	return list
}

// view reads a job; the ids of letters are given anew.
func (p *pair) view(s store.Store, id journal.JobID) (*store.JobView, error) {
	v, err := s.Job(p.ctx, id)
	if v != nil {
		v.Cursor = ""
		for i := range v.Dead {
			v.Dead[i].ID = int64(i)
		}
	}
	return v, err
}

func (p *pair) compareRequest(job journal.JobID, request journal.GUID) {
	_, _ = both(p, "pauses", func(_ int, s store.Store) ([]store.Pause, error) { return s.Pauses(p.ctx, job, request) })
	_, _ = both(p, "effects", func(_ int, s store.Store) ([]store.EffectRow, error) { return s.Effects(p.ctx, job, request) })
}

// ask reads something.
func (p *pair) ask() {
	jobs := p.views()
	if len(jobs) == 0 {
		return
	}
	v := jobs[p.upTo("job", len(jobs)-1)]
	switch p.upTo("ask", 7) {
	case 0:
		key := pick(p, "key", v.Key, "nobody")
		_, _ = both(p, "find", func(_ int, s store.Store) (journal.JobID, error) { return s.FindJob(p.ctx, key) })
	case 1:
		f := store.JobFilter{
			State: pick(p, "state", "", journal.JobOpen, journal.JobFailed), Flow: pick(p, "flow", "", "first", "kid"),
			Prefix: pick(p, "prefix", "", "k", "k0/"), Limit: pick(p, "limit", 0, 1, 2, -1, store.MaxPage+1),
		}
		_, _ = both(p, "list", func(_ int, s store.Store) ([]store.JobSummary, error) {
			first, err := s.Jobs(p.ctx, f)
			if err != nil || len(first) == 0 {
				return nil, err
			}
			f := f
			f.Before = first[len(first)-1].Cursor
			next, err := p.list(s, f)
			return append(cursorless(first), next...), err
		})
	case 2:
		if e, ok := recent(p, "effect", p.effects); ok {
			_, _ = both(p, "find effect", func(_ int, s store.Store) ([]store.JobEffect, error) { return s.FindEffect(p.ctx, e.Key) })
		}
	case 3:
		if m, ok := recent(p, "message", p.messages); ok {
			p.compareRequest(m.Job, m.Row)
		}
	case 4:
		p.compareJob(v.ID)
	case 5:
		_, _ = both(p, "order", func(_ int, s store.Store) (*collation.Row, error) {
			return journaltest.Driven{Store: s}.Order(p.ctx, v.ID)
		})
	case 6:
		p.compareJob(journal.JobID{8: 9})
	case 7:
		limit := pick(p, "limit", 0, 1, 2, -1, store.MaxPage+1)
		_, _ = both(p, "open letters", func(_ int, s store.Store) ([]store.DeadView, error) {
			out, err := s.DeadLetters(p.ctx, false, limit)
			for i := range out {
				out[i].ID = 0
			}
			return out, err
		})
	}
}

// deployment is a call about flow versions and their schedules.
func (p *pair) deployment() {
	f := pick(p, "flow", p.main...)
	switch p.upTo("deployment", 3) {
	case 0:
		other := ref(f)
		other.Version, other.Digest[0] = pick(p, "version", "1", "2"), 1
		_, _ = both(p, "deploy", func(_ int, s store.Store) (bool, error) { return s.Deploy(p.ctx, other, f.Canonical()) })
	case 1:
		v := pick(p, "version", "1", "3")
		_ = p.done("activate", func(_ int, s store.Store) error { return s.Activate(p.ctx, f.Name(), v) })
	case 2:
		before := collation.Micros(p.clock)
		if list, err := p.stores[1].Schedules(p.ctx); err == nil && len(list) > 0 {
			before = list[0].Last
		}
		_ = p.done("mark schedule", func(_ int, s store.Store) error { return s.MarkSchedule(p.ctx, f.Name(), before, before+1) })
	case 3:
		name := pick(p, "name", f.Name(), "nobody")
		_, _ = both(p, "flow", func(_ int, s store.Store) ([]byte, error) { return s.Flow(p.ctx, name, "1") })
		_, _ = both(p, "active flow", func(_ int, s store.Store) (journal.FlowRef, error) {
			ref, _, err := s.ActiveFlow(p.ctx, name)
			return ref, err
		})
	}
}
