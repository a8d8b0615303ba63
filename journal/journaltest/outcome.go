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
	got, err := b.s.Outcomes(b.ctx(), []journal.JobID{id})
	require.NoError(b, err)
	require.Len(b, got, 1)
	o := got[id]
	ended, err := b.s.Ended(b.ctx(), []journal.JobID{id})
	require.NoError(b, err)
	require.Equal(b, map[journal.JobID]bool{id: o.Over()}, ended)
	return o
}

func outcomeEnds(b *bench) {
	c := b.committer()
	open, failed := b.requested(c, fork, "open"), b.requested(c, fork, "failed")
	b.answer(c, failed, "left", failure(journal.ResponseTerminal, "declined"))
	done := b.requested(c, one, "done")
	require.Equal(b, store.Outcome{Key: "done", State: journal.JobOpen}, b.ending(done))
	b.answer(c, done, "work", success(`{"n":7}`))

	got, err := b.s.Outcomes(b.ctx(), []journal.JobID{done, failed, open, done})
	require.NoError(b, err)
	require.Len(b, got, 3)
	require.Equal(b, store.Outcome{Key: "open", State: journal.JobOpen}, got[open])
	require.Equal(b, b.ending(done), got[done])
	v := b.view(done)
	require.Equal(b, store.Outcome{Key: "done", State: journal.JobCompleted, Ended: true, Code: collation.CodeOK, Output: v.Output}, got[done])
	require.JSONEq(b, `{"got":{"n":7}}`, string(v.Output))
	v = b.view(failed)
	require.Equal(b, "declined", v.Error.Message)
	require.Equal(b, store.Outcome{Key: "failed", State: journal.JobFailed, Ended: true, Code: collation.CodeInternal, Error: v.Error}, got[failed])
}

func outcomeTasks(b *bench) {
	b.mode.Stepwise = true
	c := b.committer()
	for key, with := range map[string]*journal.Response{
		"well": success(`{"n":7}`), "ill": failure(journal.ResponseTerminal, "declined"),
	} {
		id := b.requested(c, one, key)
		r := b.row(id, journal.MessageRequest, "work")
		m := response(&r, with)
		closed := 0
		for done := false; !done; {
			p, err := b.once(c, m)
			require.NoError(b, err)
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
	c := b.committer()
	id := b.start(b.deploy(one), "k")
	m := message(&b.view(id).Rows[0])
	l, err := b.load(c, m)
	require.NoError(b, err)
	p := collation.Quarantine(l.States[id], m, b.mode, errors.New("a digit is wrong"))
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{store.Chain(&l.States[id].Job, p)}))
	o := b.ending(id)
	require.Equal(b, store.Outcome{Key: "k", State: journal.JobQuarantined}, o)
	require.True(b, o.Over())
}

func outcomeTombstone(b *bench) {
	c := b.committer()
	was := b.tombstone(c, "k")
	gone := store.Outcome{Key: "k", State: journal.JobExpired, Ended: true}
	require.Equal(b, gone, b.ending(was.ID))
	id := b.start(b.deploy(one), "k")
	require.Equal(b, gone, b.ending(was.ID))
	require.Equal(b, store.Outcome{Key: "k", State: journal.JobOpen}, b.ending(id))
}

func outcomeUnknown(b *bench) {
	got, err := b.s.Outcomes(b.ctx(), []journal.JobID{{1}})
	require.NoError(b, err)
	require.Empty(b, got)
	_, err = b.s.Outcomes(b.ctx(), make([]journal.JobID, store.MaxOutcomes+1))
	require.ErrorIs(b, err, store.ErrRejected)
}
