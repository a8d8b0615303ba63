package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// mailbox is a mailbox whose waits opened at the times 1, 2, …, each of a job of its own.
func mailbox(all bool, waits ...collation.Wait) *collation.Box {
	box := &collation.Box{ID: journal.JobID{7}, Now: 100, All: all}
	for i := range waits {
		w := waits[i]
		w.GUID, w.Job, w.Since, w.Topic = journal.GUID{byte(i + 1)}, journal.JobID{byte(i + 1)}, collation.Micros(i+1), "t"
		box.Waits = append(box.Waits, collation.BoxWait{Wait: w, JobKey: "job"})
	}
	return box
}

// mailed is the row of a signal that was sent at the given time.
func mailed(t *testing.T, n byte, sent collation.Micros, code int, all bool) *collation.Row {
	t.Helper()
	x := collation.Signal{GUID: journal.GUID{0xf0, n}, Topic: "t", Key: "k", Code: code, Payload: []byte(`1`), All: all, Sent: sent}
	row, err := x.Row("test")
	require.NoError(t, err)
	return &row
}

// deliver delivers a signal for which everything is loaded, and updates the box.
func deliver(t *testing.T, box *collation.Box, row *collation.Row) *collation.Mail {
	t.Helper()
	m, need, err := collation.Deliver(box, row.GUID, collation.Mode{})
	require.NoError(t, err)
	require.Nil(t, need)
	if m != nil {
		box.Apply(m.Plan)
	}
	return m
}

func named(box *collation.Box, rows ...*collation.Row) {
	box.Named = map[journal.GUID]*collation.Row{}
	for _, r := range rows {
		box.Named[r.GUID] = r
	}
}

// 1.11: the oldest signal goes to the oldest wait that takes it. Due signals that were sent
// before go first, and a signal that no wait takes is kept. A handled signal is not handled
// again.
func TestDeliverOldestFirst(t *testing.T) {
	t.Parallel()
	older, one, late := mailed(t, 1, 10, 200, false), mailed(t, 2, 20, 200, false), mailed(t, 3, 30, 200, false)
	box := mailbox(true, collation.Wait{})
	named(box, one, older)
	box.Due = []*collation.Row{late, one, older}
	m := deliver(t, box, one)
	require.Equal(t, []journal.GUID{older.GUID}, m.Plan.Delete)
	require.Equal(t, []collation.SignalWrite{{GUID: older.GUID, State: collation.SignalConsumed}}, m.Plan.Signals)
	require.Len(t, m.Plan.Update, 1, "what was sent later is not touched")
	require.Equal(t, []any{one.GUID, collation.HeldKept}, []any{m.Plan.Update[0].GUID, m.Plan.Update[0].Held})
	require.Equal(t, []collation.Taken{{Job: journal.JobID{1}, GUID: journal.GUID{1}, Ended: true}}, m.Plan.Taken)
	require.Equal(t, []any{"job", collation.SignalKept}, []any{m.ResolvedWaits[0].JobKey, m.State})
	require.Equal(t, journal.JobID{1}, m.Plan.Insert[0].Job)
	require.Nil(t, deliver(t, box, one), "it is kept")
	require.Nil(t, deliver(t, box, older), "it has gone")
	require.Equal(t, []*collation.Row{late}, box.Due)
	require.Empty(t, box.Waits)
}

// 1.11: a signal of mode all reaches every open wait and is not kept. A repeating wait counts
// it, with a number for each signal.
func TestDeliverToAll(t *testing.T) {
	t.Parallel()
	first, second := mailed(t, 1, 10, collation.CodePass, true), mailed(t, 2, 20, collation.CodePass, true)
	box := mailbox(true, collation.Wait{}, collation.Wait{Repeat: true, Count: 3})
	named(box, first, second)
	m := deliver(t, box, first)
	require.Equal(t, []collation.Taken{
		{Job: journal.JobID{1}, GUID: journal.GUID{1}, Ended: true},
		{Job: journal.JobID{2}, GUID: journal.GUID{2}, Seen: 3, Count: 4},
	}, m.Plan.Taken)
	require.Equal(t, []any{2, 2, collation.SignalConsumed}, []any{len(m.Plan.Insert), m.Reached, m.State})
	require.Equal(t, []journal.GUID{first.GUID}, m.Plan.Delete)
	m = deliver(t, box, second)
	require.Equal(t, []collation.Taken{{Job: journal.JobID{2}, GUID: journal.GUID{2}, Seen: 4, Count: 5}}, m.Plan.Taken)
	x, err := journal.DecodeResponse(m.Plan.Insert[0].Body)
	require.NoError(t, err)
	require.Equal(t, 5, x.Number)
}

// A decision asks for more waits as long as those that were read do not suffice.
func TestDeliverAsksForMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row  *collation.Row
		box  *collation.Box
		more int
	}{
		"none was read":            {mailed(t, 1, 10, 200, false), mailbox(false), 1},
		"the one read is too new":  {mailed(t, 1, 0, 200, false), mailbox(false, collation.Wait{MaxAge: 1}), 32},
		"one is enough":            {mailed(t, 1, 10, 200, false), mailbox(false, collation.Wait{}), 0},
		"all want all":             {mailed(t, 1, 10, 200, true), mailbox(false, collation.Wait{}), collation.MaxReach - 1},
		"there are no more to ask": {mailed(t, 1, 10, 200, true), mailbox(true, collation.Wait{}), 0},
	} {
		named(c.box, c.row)
		m, need, err := collation.Deliver(c.box, c.row.GUID, collation.Mode{})
		require.NoError(t, err, name)
		require.Equal(t, c.more > 0, m == nil, name)
		if c.more > 0 {
			require.Equal(t, c.more, need.Further, name)
			require.Len(t, c.box.Named, 1, "the box stays as it was")
		}
	}
}

// 1.11: a signal behind too many others waits its turn, whatever becomes of those before it.
func TestDeliverWaitsItsTurn(t *testing.T) {
	t.Parallel()
	last := mailed(t, 1, 10_000, 200, false)
	last.GUID[2] = 1
	box := mailbox(true, collation.Wait{Repeat: true})
	named(box, last)
	for i := range collation.MaxDue {
		box.Due = append(box.Due, mailed(t, byte(i), collation.Micros(i), collation.CodePass, false))
	}
	m := deliver(t, box, last)
	require.Len(t, m.Plan.Delete, collation.MaxDue)
	require.Equal(t, []any{collation.SignalKept, 0}, []any{m.State, m.Reached})
	require.NotNil(t, box.Named[last.GUID], "it stands, due as it was")
	require.Equal(t, collation.SignalConsumed, deliver(t, box, last).State)
}

// A row that is no signal is refused alone.
func TestDeliverUnreadable(t *testing.T) {
	t.Parallel()
	row := mailed(t, 1, 10, 200, false)
	row.Body = []byte("{")
	box := mailbox(true, collation.Wait{})
	named(box, row)
	_, _, err := collation.Deliver(box, row.GUID, collation.Mode{})
	require.ErrorIs(t, err, collation.ErrSignal)
}

// 1.11: a signal that was kept ends when its time has passed, and not before.
func TestLapse(t *testing.T) {
	t.Parallel()
	x := &collation.Signal{GUID: journal.GUID{9}, Topic: "t", Key: "k", Keep: 10, Sent: 90}
	row, err := x.Row("test")
	require.NoError(t, err)
	row = x.Kept(row)
	box := mailbox(true)
	named(box, &row)
	p := collation.Lapse(box, x.GUID)
	require.Equal(t, []journal.GUID{x.GUID}, p.Delete)
	require.Equal(t, []collation.SignalWrite{{GUID: x.GUID, State: collation.SignalMissed}}, p.Signals)
	box.Now--
	require.Nil(t, collation.Lapse(box, x.GUID), "its time has not passed")
	box.Now++
	row.Held = ""
	require.Nil(t, collation.Lapse(box, x.GUID), "a wait has made it due")
	require.Nil(t, collation.Lapse(box, journal.GUID{8}), "it has gone")
}

// 1.11: a signal from outside goes behind due ones. If no wait is left it is kept, and with
// mode all missed. Behind too many others it becomes due itself.
func TestReceive(t *testing.T) {
	t.Parallel()
	receive := func(box *collation.Box, all bool) *collation.Mail {
		x := collation.Signal{GUID: journal.GUID{9}, Topic: "t", Key: "k", Code: 200, Payload: []byte(`1`), All: all}
		m, need, err := collation.Receive(box, "test", x, collation.Mode{})
		require.NoError(t, err)
		require.Nil(t, need)
		last := len(m.Plan.Signals) - 1
		require.Equal(t, collation.SignalWrite{GUID: x.GUID, State: m.State, New: true}, m.Plan.Signals[last])
		return m
	}
	taken := receive(mailbox(true, collation.Wait{}), false)
	require.Equal(t, []any{collation.SignalConsumed, 1, 1}, []any{taken.State, taken.Reached, len(taken.Plan.Insert)})
	missed := receive(mailbox(true), true)
	require.Equal(t, []any{collation.SignalMissed, 0, 0}, []any{missed.State, missed.Reached, len(missed.Plan.Insert)})

	behind := mailbox(true, collation.Wait{})
	behind.Due = []*collation.Row{mailed(t, 1, 10, 200, false)}
	kept := receive(behind, false)
	require.Equal(t, []any{collation.SignalKept, 0, 1}, []any{kept.State, kept.Reached, len(kept.ResolvedWaits)})
	require.Equal(t, collation.HeldKept, kept.Plan.Insert[1].Held)

	full := mailbox(true)
	full.ID = collation.Mailbox("test", "t", "k")
	for i := range collation.MaxDue {
		full.Due = append(full.Due, mailed(t, byte(i), collation.Micros(i), 200, true))
	}
	due := receive(full, false)
	require.Equal(t, collation.SignalKept, due.State)
	require.Equal(t, "", due.Plan.Insert[0].Held, "it waits its turn, and is not held")
	full.Apply(due.Plan)
	require.Len(t, full.Due, collation.MaxDue+1, "and the next one comes behind it")
}

// 1.11: an interrupt is inserted once per key, and only if it is valid.
func TestInterruptOnce(t *testing.T) {
	t.Parallel()
	row := collation.Row{Job: journal.JobID{1}, GUID: journal.GUID{1}, Kind: journal.MessageInterrupt, Body: []byte(`{"code":410}`)}
	s := &collation.State{Now: 5, Rows: map[journal.GUID]*collation.Row{}, Receipts: map[journal.GUID]*collation.Receipt{}}
	p, err := collation.Interrupt(s, row, false, collation.Mode{Resend: 10})
	require.NoError(t, err)
	require.Equal(t, []any{1, collation.Micros(5), collation.Micros(15)}, []any{p.Insert[0].Publication, p.Insert[0].PublishedAt, p.Insert[0].NextAt})
	s.Apply(p)
	p, err = collation.Interrupt(s, row, false, collation.Mode{})
	require.NoError(t, err)
	require.Nil(t, p)

	row.GUID, s.Job.State = journal.GUID{2}, journal.JobCompleted
	p, err = collation.Interrupt(s, row, false, collation.Mode{})
	require.NoError(t, err)
	late := []collation.SignalWrite{{GUID: row.GUID, State: collation.SignalMissed, New: true}}
	require.Equal(t, &collation.Plan{Message: row.GUID, Job: row.Job, Outcome: collation.Stale, Done: true, Signals: late}, p,
		"nothing of a closed job (W12)")
	p, err = collation.Interrupt(s, row, true, collation.Mode{})
	require.NoError(t, err)
	require.Nil(t, p)

	row.GUID, row.Body = journal.GUID{3}, []byte(`{"code":200}`)
	_, err = collation.Interrupt(s, row, false, collation.Mode{})
	require.ErrorContains(t, err, "400 to 599")
}
