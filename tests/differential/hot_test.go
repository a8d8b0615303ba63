package differential

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// Decisions on what was read before (W6), and plans that no lawful engine makes (C3).

// pair opens a committer of each store.
func (w *twin) pair() *pair {
	c, err := w.Committer(w.ctx, true)
	require.NoError(w, err)
	return c.(*pair)
}

// read loads one want, and rolls back.
func (p *pair) read(want store.Want) *store.Loaded {
	l, err := p.Load(p.w.ctx, []store.Want{want}, true)
	require.NoError(p.w, p.Rollback(p.w.ctx))
	if err != nil {
		return nil
	}
	return l
}

// between is what may come between a read and the commit of what was decided on it.
func (w *twin) between() {
	if w.chance("something comes between", 60) {
		pick(
			w, "what comes between",
			(*twin).effect, (*twin).lease, (*twin).sweep, (*twin).signal, (*twin).work, (*twin).live,
		)(w)
	}
}

// hot decides a message on a state that was read before, and commits it without a Load.
func (w *twin) hot() {
	row, ok := recent(w, "row", slices.DeleteFunc(w.rows(), func(r collation.Row) bool {
		return r.Kind == journal.MessageSignal || r.Kind == journal.MessageStart && r.Activity == ""
	}))
	if !ok {
		return
	}
	m, c := w.message(&row), w.pair()
	defer c.Close()
	l := c.read(store.Want{Job: m.Job, Whole: true})
	if l == nil || l.States[m.Job] == nil || !l.States[m.Job].Keep() {
		return
	}
	base := l.States[m.Job]
	base.Flow = w.flowOf(base)
	w.between()
	st := base.Fork(base.Now)
	x, err := journaltest.Carrying(st, m)
	require.NoError(w, err)
	p, need := collation.Step(st, &x, w.mode)
	if need != nil {
		return
	}
	chained := store.Chain(&st.Job, p)
	chained.Guard = store.GuardOf(base, []*collation.Plan{p})
	_ = c.Commit(w.ctx, []store.Chained{chained})
}

// warm decides on an effect on a chain that was read before, and commits it without a Load.
func (w *twin) warm() {
	r, ok := w.request()
	if !ok {
		return
	}
	l, e, c := w.leaseOf(&r), w.drawEffect(&r), w.pair()
	defer c.Close()
	read := c.read(store.Want{Chain: l.Key(), Effects: []journal.Digest{e.Key}, Past: l.Resumes})
	if read == nil || read.Chains[l.Key()] == nil {
		return
	}
	w.between()
	var out collation.Effected
	var err error
	if h := read.Chains[l.Key()]; w.chance("start", 60) {
		e.Result, e.Error = nil, nil
		out, err = h.Start(l, e, w.mode)
	} else {
		out, err = h.Finish(l, e, false, w.mode)
	}
	if err == nil && out.Plan != nil {
		_ = c.Commit(w.ctx, []store.Chained{{Plan: out.Plan}})
	}
}

// drawEffect draws an effect of a request, sometimes one that was drawn before.
func (w *twin) drawEffect(r *collation.Row) journal.Effect {
	e := journal.Effect{
		Name: pick(w, "name", "pay", "log"), N: w.upTo("n", 1), Turn: r.Turn, Fence: r.Fence,
		Position: pick(w, "position", "", "1"), Result: []byte(fmt.Sprint(w.upTo("result", 2))),
		Class: pick(
			w, "class", store.ClassGuarded, store.ClassGuarded, store.ClassIdempotent, store.ClassPure, store.ClassUndo,
		),
	}
	e.Key = sha256.Sum256(fmt.Appendf(nil, "%s %s %d", r.GUID, e.Name, e.N))
	if old, ok := recent(w, "an effect", w.effects); ok && w.chance("again", 30) {
		e = old
	}
	w.effects = append(w.effects, e)
	return e
}

// absent is a GUID that nothing has.
var absent = journal.GUID{6: 0x80, 8: 0x80, 15: 99}

// spoilers each make a plan unlawful; false where it has no such part.
var spoilers = map[string]func(p *collation.Plan) bool{
	"semaphore": func(p *collation.Plan) bool { p.Semaphore.Before++; p.Semaphore.After++; return p.Entry != nil },
	"ledger that was not": func(p *collation.Plan) bool {
		return each(p.Ledgers, func(x *collation.LedgerWrite) { x.New = !x.New })
	},
	"ledger as it was not": func(p *collation.Plan) bool {
		return each(p.Ledgers, func(x *collation.LedgerWrite) { x.New, x.Before = false, x.Before+1 })
	},
	"ledger that shrinks": func(p *collation.Plan) bool {
		return each(p.Ledgers, func(x *collation.LedgerWrite) { x.After = 0 }) && p.Ledgers[0].Before > 0
	},
	"receipt that was not": func(p *collation.Plan) bool {
		if p.Receipt != nil {
			p.Receipt.New = !p.Receipt.New
		}
		return p.Receipt != nil
	},
	"close that is none": func(p *collation.Plan) bool {
		if p.Receipt != nil {
			p.Receipt.Closes = !p.Receipt.Closes
		}
		return p.Receipt != nil
	},
	"row that is gone": func(p *collation.Plan) bool { p.Delete = append(p.Delete, absent); return true },
	"row twice": func(p *collation.Plan) bool {
		if len(p.Insert) > 0 {
			p.Insert = append(p.Insert, p.Insert[0])
		}
		return len(p.Insert) > 0
	},
	"row that moved": func(p *collation.Plan) bool { return each(p.Update, func(x *collation.Row) { x.Rev-- }) },
	"wait that is gone": func(p *collation.Plan) bool {
		p.CancelWaits = append(p.CancelWaits, collation.CancelledWait{GUID: absent})
		return p.Entry != nil
	},
	"start that is gone": func(p *collation.Plan) bool {
		p.CancelStarts = append(p.CancelStarts, collation.RowKey{Job: journal.JobID{1}, GUID: absent})
		return true
	},
	"letter that is gone": func(p *collation.Plan) bool {
		p.Letters = append(p.Letters, collation.LetterEnd{ID: 1 << 30, State: collation.LetterAnswered})
		return true
	},
}

// each changes all parts of a list; false where there are none.
func each[T any](list []T, change func(*T)) bool {
	for i := range list {
		change(&list[i])
	}
	return len(list) > 0
}

// spoil makes some plans unlawful: both stores must refuse them, whole.
func (w *twin) spoil(p *collation.Plan) {
	if !w.chance("spoil it", 3) {
		return
	}
	names := make([]string, 0, len(spoilers))
	for name := range spoilers {
		names = append(names, name)
	}
	slices.Sort(names)
	name := pick(w, "spoiler", names...)
	if was := new(*p); spoilers[name](was) {
		*p, w.spoiled = *was, name
	}
}
