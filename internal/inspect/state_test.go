package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// What the reader makes of entries is what the verifier makes of them, at every entry, although they
// share no code (J10): of any job, its children, and the jobs that resume it.
func TestStateIsThatOfTheVerifier(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]collation.Mode{"fold": {Fold: true}, "apart": {}, "stepwise": {Stepwise: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				o := replaytest.Drawn(t, mode)
				for _, j := range replaytest.Family(o) {
					s, v := newState(j.Header.Job), replay.New(j.Header)
					all := j.Entries() // those of effect chains come last, or between the others
					if rapid.Bool().Draw(t, "mixed") {
						slices.SortStableFunc(all, func(a, b *journal.Entry) int { return cmp.Compare(a.Time, b.Time) })
					}
					for _, e := range all {
						require.NoError(t, s.apply(e))
						require.NoError(t, v.ApplyEntry(e, journal.Digest{}))
						same(t, v, s, e)
					}
				}
			})
		})
	}
}

func same(t *rapid.T, want *replay.Job, s *state, e *journal.Entry) {
	at := fmt.Sprintf("at entry %d (%s) of chain %s", e.Seq, e.Kind, e.Chain)
	require.Equal(t, want.State, s.state, at)
	require.Equal(t, want.Semaphore, s.semaphore, at)
	require.Equal(t, want.ClosedAt, s.closedAt, at)
	require.Equal(t, want.TasksAt > 0, s.tasksDone, at)
	require.Equal(t, want.Flow, s.flow, at)
	require.Len(t, s.instances, len(want.Instances), at)
	for key, i := range want.Instances {
		have := s.instances[key]
		require.NotNil(t, have, at)
		require.Equal(t, collation.Instance{
			Ledger: i.Ledger, ResultSeq: i.ResultSeq, Code: i.Code,
			More: collation.More{
				Leg1: i.Leg1, Open: i.Open, Count: i.Count, Turn: i.Turn, Attempt: i.Attempt, Child: i.Child,
			},
		}, have.Instance, "%s %s", key, at)
	}
	require.Len(t, s.rows, len(want.Rows), at)
	for guid, r := range want.Rows {
		have := s.rows[guid]
		require.NotNil(t, have, at)
		require.Equal(t, row{
			kind: r.Kind, key: collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}, topic: r.Topic,
			element: r.Element,
			turn:    r.Turn, attempt: r.Attempt, nextAt: r.NextAt, held: r.Held, origin: r.Origin, pauses: r.Pauses,
			child: have.child,
		}, *have, at)
	}
	require.Len(t, s.receipts, len(want.Receipts), at)
	for guid, r := range want.Receipts {
		have := s.receipts[guid]
		require.NotNil(t, have, at)
		require.Equal(t, receipt{
			element: r.Element,
			ledger:  r.Ledger, verdict: r.Verdict, seq: r.Seq, row: r.Row, message: r.Message, kind: r.Kind,
			code:   r.Code,
			pauses: have.pauses, of: have.of,
		}, *have, at)
	}
	waiting(t, want, s, at)
}

func waiting(t *rapid.T, want *replay.Job, s *state, at string) {
	require.Len(t, s.waits, len(want.Waits), at)
	for guid, w := range want.Waits {
		have := s.waits[guid]
		require.NotNil(t, have, at)
		require.Equal(t, collation.Wait{
			GUID: guid, Job: s.job, Activity: w.Activity, DAD: w.DAD, Topic: w.Topic, Key: w.Key, Repeat: w.Repeat,
			Count: w.Passed, Origin: w.Origin, Request: w.Request, Since: have.Since,
		}, *have, at)
	}
	require.Len(t, s.children, len(want.Children), at)
	for guid, c := range want.Children {
		have := s.children[guid]
		require.NotNil(t, have, at)
		key := collation.InstanceKey{Activity: c.Activity, DAD: c.DAD}
		require.Equal(t, child{job: c.Job, key: key, turn: c.Turn, at: c.At, origin: c.Origin}, *have, at)
	}
	require.Len(t, s.pauses, len(want.Pauses), at)
	for guid, p := range want.Pauses {
		have := s.pauses[guid]
		require.NotNil(t, have, at)
		require.Equal(t, pause{
			PauseRef: p.PauseRef, request: p.Request, key: collation.InstanceKey{Activity: p.Activity, DAD: p.DAD},
			named: p.Named, since: p.Since, accepts: p.Taken, due: p.Due, came: p.Came, at: have.at,
		}, *have, at)
	}
	require.Len(t, s.others, len(want.Passes), at)
	for key, r := range want.Passes {
		require.Equal(t, r.ResultSeq, s.others[key], "%s %s", key, at)
	}
	require.Len(t, s.undone, len(want.Undos), at)
	require.Len(t, s.chains, len(want.Chains), at)
	require.Len(t, s.obligations, len(want.Obligations), at)
	for guid, o := range want.Obligations {
		key := collation.InstanceKey{Activity: o.Activity, DAD: o.DAD}
		require.Equal(t, obligation{key, o.Since}, s.obligations[guid], at)
	}
}
