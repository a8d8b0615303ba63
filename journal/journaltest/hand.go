package journaltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// change adds to a handmade plan.
type change func(p *collation.Plan, st *collation.State)

// alter commits a handmade plan to a job.
func (b *bench) alter(id journal.JobID, changes ...change) error {
	l, err := b.c.Load(b.ctx(), []store.Want{{Job: id}}, true)
	if err != nil {
		return err
	}
	st := l.States[id]
	p := handmade(st, &collation.Message{Job: id})
	all(changes...)(p, st)
	return b.commit(store.Chain(&st.Job, p))
}

// altered is alter, which must succeed.
func (b *bench) altered(id journal.JobID, changes ...change) {
	b.Helper()
	require.NoError(b, b.alter(id, changes...))
}

// quarantine takes a job out of service.
func (b *bench) quarantine(id journal.JobID) {
	b.Helper()
	st := b.locked(b.c, store.Want{Job: id}).States[id]
	p := collation.Quarantine(st, &collation.Message{Job: id}, b.mode, errors.New("a digit is wrong"))
	require.NoError(b, b.commit(store.Chain(&st.Job, p)))
}

// more loads only what a need of a job names.
func (b *bench) more(id journal.JobID, need collation.Need) *collation.State {
	b.Helper()
	l := b.locked(b.c, store.Want{Job: id})
	require.NoError(b, b.c.More(b.ctx(), map[journal.JobID]*collation.Need{id: &need}))
	require.NoError(b, b.c.Rollback(b.ctx()))
	return l.States[id]
}

// stored reads a row of any job or mailbox with the help of an existing job; nil if there is
// none.
func (b *bench) stored(helper journal.JobID, k collation.RowKey) *collation.Row {
	b.Helper()
	rows := b.more(helper, collation.Need{Rows: []collation.RowKey{k}}).Rows
	require.Contains(b, rows, k.GUID)
	return rows[k.GUID]
}

func keyOf(r *collation.Row) collation.RowKey { return collation.RowKey{Job: r.Job, GUID: r.GUID} }

// guid returns the n-th GUID for cases.
func guid(n int) journal.GUID {
	return journal.GUID{6: 0x80, 8: 0x80, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
}

func (b *bench) space() string {
	b.Helper()
	return got(b.s.Space(b.ctx()))(b)
}

// waits adds a wait of the activity `work`, which the entry names.
func waits(w collation.Wait) change {
	return func(p *collation.Plan, st *collation.State) {
		if w.Since == 0 {
			w.Since = st.Now
		}
		w.Job, w.Activity, w.DAD, w.Origin = st.Job.ID, "work", ",0,0", p.Entry.Seq
		p.Waits = append(p.Waits, w)
		p.Entry.Waits = append(p.Entry.Waits, journal.Wait{GUID: w.GUID, Topic: w.Topic, Key: w.Key, Repeat: w.Repeat})
	}
}

// cancelsWait adds the cancel of a wait.
func cancelsWait(g journal.GUID, count int) change {
	return func(p *collation.Plan, _ *collation.State) {
		p.CancelWaits = append(p.CancelWaits, collation.CancelledWait{GUID: g, Count: count})
		p.Entry.Cancelled = append(p.Entry.Cancelled, g)
	}
}

// inserts adds a row of another job or of a mailbox.
func inserts(r collation.Row) change {
	return func(p *collation.Plan, _ *collation.State) {
		r.Origin = p.Entry.Seq
		p.Insert = append(p.Insert, r)
		p.Entry.Dispatched = append(p.Entry.Dispatched, journal.Dispatched{
			GUID: r.GUID, Kind: r.Kind, Activity: r.Activity, DAD: string(r.DAD), Topic: r.Topic, Job: r.Job,
		})
	}
}

// cancelsStart adds the cancel of a child's start.
func cancelsStart(k collation.RowKey) change {
	return func(p *collation.Plan, _ *collation.State) {
		p.CancelStarts = append(p.CancelStarts, k)
		p.Entry.CancelledByClose = append(p.Entry.CancelledByClose, k.GUID)
	}
}

// ledgers adds a write of an instance.
func ledgers(w collation.LedgerWrite) change {
	return func(p *collation.Plan, _ *collation.State) {
		p.Ledgers = append(p.Ledgers, w)
		if w.Before != w.After {
			p.Entry.Joins = append(p.Entry.Joins, journal.LedgerMove{
				Activity: w.Key.Activity, DAD: string(w.Key.DAD), After: journal.Ledger(w.After),
			})
		}
	}
}

// all joins changes to one.
func all(changes ...change) change {
	return func(p *collation.Plan, st *collation.State) {
		for _, add := range changes {
			add(p, st)
		}
	}
}

// signal returns a signal from outside, under the caller's key.
func (b *bench) signal(topic, key, caller string) *collation.Signal {
	b.Helper()
	return &collation.Signal{
		GUID: collation.SignalGUID(b.space(), topic, key, caller), Topic: topic, Key: key, Code: collation.CodeOK,
		Payload: json.RawMessage(strconv.Quote(caller)), Who: "ann",
	}
}

// sent inserts the row of a signal, as a signal activity does, and returns its key.
func (b *bench) sent(by journal.JobID, s *collation.Signal) collation.RowKey {
	b.Helper()
	var k collation.RowKey
	b.altered(by, func(p *collation.Plan, st *collation.State) {
		if s.Sent == 0 {
			s.Sent = st.Now
		}
		row, err := s.Row(b.space())
		require.NoError(b, err)
		k = keyOf(&row)
		inserts(row)(p, st)
	})
	return k
}

// tell sends a signal from outside to the store.
func (b *bench) tell(s *collation.Signal) store.Signalled {
	b.Helper()
	return got(b.s.Signal(b.ctx(), s, b.mode))(b)
}

// deliver delivers signals to their waits.
func (b *bench) deliver(keys ...collation.RowKey) []store.Outgoing {
	b.Helper()
	return got(b.s.Deliver(b.ctx(), keys, b.mode))(b)
}

// jobs starts n jobs of flow one and handles nothing, for waits and rows that need a job.
func (b *bench) jobs(n int) []journal.JobID {
	b.Helper()
	f := b.deploy(one)
	list := make([]store.Start, n)
	for i := range list {
		list[i] = starting(f, fmt.Sprint("job-", i), `{"n":7}`)
	}
	return b.begin(list...)
}

// woken reads the response that a wake-up carries.
func (b *bench) woken(r *collation.Row) *journal.Response {
	b.Helper()
	require.Equal(b, journal.MessageWakeUp, r.Kind)
	x, err := journal.DecodeResponse(r.Body)
	require.NoError(b, err)
	require.Equal(b, journal.BySignal, x.By)
	return x
}
