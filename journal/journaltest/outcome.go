package journaltest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var outcomes = map[string]func(*bench){
	"how jobs ended (W5)": outcomeEnds,
	"a job that is closed has not ended before its completion tasks (W5)": outcomeTasks,
	"nobody waits for a quarantined job (J1, W5)":                         outcomeQuarantine,
	"tombstones have ended, also those of keys used again (J7, W5)":       outcomeTombstone,
	"unknown ids are absent, and their number is bounded (T11)":           outcomeUnknown,
}

// ending returns how one job ended. It also checks that Ended agrees.
func (b *bench) ending(id journal.JobID) store.Outcome {
	b.Helper()
	o, there := got(b.s.Outcomes(b.ctx(), []journal.JobID{id}))(b)[id]
	require.True(b, there)
	ended := got(b.s.Ended(b.ctx(), []journal.JobID{id}))(b)
	require.Equal(b, map[journal.JobID]bool{id: o.Over()}, ended)
	return o
}

func outcomeEnds(b *bench) {
	open, failed := b.requested(fork, "open"), b.requested(fork, "failed")
	b.answer(failed, "left", failure(journal.ResponseTerminal, "declined"))
	done := b.requested(one, "done")
	require.Equal(b, store.Outcome{Key: "done", State: journal.JobOpen}, b.ending(done))
	b.answer(done, "work", success(`{"n":7}`))

	list := got(b.s.Outcomes(b.ctx(), []journal.JobID{done, failed, open, done}))(b)
	require.Len(b, list, 3)
	require.Equal(b, store.Outcome{Key: "open", State: journal.JobOpen}, list[open])
	require.Equal(b, b.ending(done), list[done])
	v := b.view(done)
	require.Equal(b, store.Outcome{Key: "done", State: journal.JobCompleted, Ended: true, Code: collation.CodeOK, Output: v.Output}, list[done])
	require.JSONEq(b, `{"got":{"n":7}}`, string(v.Output))
	v = b.view(failed)
	require.Equal(b, "declined", v.Error.Message)
	require.Equal(b, store.Outcome{Key: "failed", State: journal.JobFailed, Ended: true, Code: collation.CodeInternal, Error: v.Error}, list[failed])
}

func outcomeTasks(b *bench) {
	b.mode.Stepwise = true
	for key, with := range map[string]*journal.Response{
		"well": success(`{"n":7}`), "ill": failure(journal.ResponseTerminal, "declined"),
	} {
		id := b.requested(one, key)
		r := b.request(id, "work")
		m := response(&r, with)
		closed := 0
		for done := false; !done; {
			p := got(b.once(b.c, m))(b)
			done = p.Done
			v, o := b.view(id), b.ending(id)
			require.Equal(b, v.Ended, o.Ended)
			if v.State.Closed() && !v.Ended {
				closed++
				require.Equal(b, store.Outcome{Key: key, State: v.State}, o)
			}
		}
		require.Equal(b, 1, closed)
		v := b.view(id)
		require.Equal(b, store.Outcome{Key: key, State: v.State, Ended: true, Code: v.Code, Error: v.Error, Output: v.Output}, b.ending(id))
	}
}

func outcomeQuarantine(b *bench) {
	id := b.start(b.deploy(one), "k")
	m := message(&b.view(id).Rows[0])
	l := got(b.load(b.c, m))(b)
	p := collation.Quarantine(l.States[id], m, b.mode, errors.New("a digit is wrong"))
	require.NoError(b, b.c.Commit(b.ctx(), []store.Chained{store.Chain(&l.States[id].Job, p)}))
	o := b.ending(id)
	require.Equal(b, store.Outcome{Key: "k", State: journal.JobQuarantined}, o)
	require.True(b, o.Over())
}

func outcomeTombstone(b *bench) {
	was := b.tombstone("k")
	gone := store.Outcome{Key: "k", State: journal.JobExpired, Ended: true}
	require.Equal(b, gone, b.ending(was.ID))
	id := b.start(b.deploy(one), "k")
	require.Equal(b, gone, b.ending(was.ID))
	require.Equal(b, store.Outcome{Key: "k", State: journal.JobOpen}, b.ending(id))
}

func outcomeUnknown(b *bench) {
	got := got(b.s.Outcomes(b.ctx(), []journal.JobID{{1}}))(b)
	require.Empty(b, got)
	_, err := b.s.Outcomes(b.ctx(), make([]journal.JobID, store.MaxOutcomes+1))
	require.ErrorIs(b, err, store.ErrRejected)
}
