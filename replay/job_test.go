package replay_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
)

func apply(t *testing.T, j *replaytest.Journal, upTo int, options ...replay.Option) *replay.Job {
	t.Helper()
	job := replay.New(j.Header, options...)
	for _, rec := range j.Records[:upTo] {
		require.NoError(t, job.Apply(rec))
	}
	return job
}

func instance(activity, dad string) collation.InstanceKey {
	return collation.InstanceKey{Activity: activity, DAD: collation.DAD(dad)}
}

// J10: the state at any seq, with the digits of the worked ledgers (1.12).
func TestTimeTravel(t *testing.T) {
	t.Parallel()
	j := retried()
	w1 := instance("w1", ",0,0")
	for _, c := range []struct {
		at      int
		ledger  string
		turn    int
		attempt int
		state   journal.JobState
		open    int
		receipt int
	}{
		{1, "000000000000000", 0, 0, journal.JobOpen, 1, 1},
		{2, "000000000000000", 0, 0, journal.JobOpen, 1, 1},
		{3, "001100000000000", 1, 1, journal.JobOpen, 1, 1},
		{4, "001100000000001", 2, 2, journal.JobOpen, 1, 2},
		{5, "201100000000002", 0, 0, journal.JobOpen, 1, 3},
		{9, "201100000000002", 0, 0, journal.JobCompleted, 0, 5},
	} {
		job := apply(t, j, c.at)
		var ledger collation.ActivityLedger
		if i := job.Instances[w1]; i != nil {
			ledger = i.Ledger
		}
		require.Equal(t, c.ledger, ledger.String(), "at %d", c.at)
		require.Equal(t, c.state, job.State, "at %d", c.at)
		require.Len(t, job.Obligations, c.open, "at %d", c.at)
		require.EqualValues(t, c.open, job.Semaphore, "at %d", c.at)
		require.Len(t, job.Receipts, c.receipt, "at %d", c.at)
		turn, attempt := 0, 0
		for _, row := range job.Rows {
			if row.Activity == "w1" {
				turn, attempt = row.Turn, row.Attempt
			}
		}
		require.Equal(t, []int{c.turn, c.attempt}, []int{turn, attempt}, "at %d", c.at)
		require.Equal(t, j.Records[c.at-1].Hash, job.At.Hash)
	}
	end := apply(t, j, 9)
	require.Equal(t, int64(9), end.ClosedAt)
	require.True(t, end.Tasks)
	require.Equal(t, int64(5), end.Instances[w1].ResultSeq)
	require.Equal(t, 200, end.Instances[w1].Code)
	require.Nil(t, end.Instances[w1].Output, "outputs are kept on request only")
}

// J10: outputs on request, in every mode.
func TestOutputs(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		j := replaytest.Honest(replaytest.Options{Mode: mode, Activities: 2, Chain: true})
		job := apply(t, j, len(j.Records), replay.KeepOutputs)
		require.JSONEq(t, `{"n":1}`, string(job.Instances[instance("t", ",0")].Output), name)
		require.JSONEq(t, `{"turn":1}`, string(job.Instances[instance("w2", ",0,0,0")].Output), name)
	}
}

// J10: effects are cached under their keys.
func TestEffectsAreRebuilt(t *testing.T) {
	t.Parallel()
	j := line()
	job := apply(t, j, len(j.Records))
	require.Len(t, job.Effects, 6)
	require.Len(t, job.Chains, 3)
	for _, s := range j.Stored.Effects {
		require.Equal(t, replay.EffectCompleted, job.Effects[s.Key].State)
		require.Equal(t, s.Result, job.Effects[s.Key].Result)
	}
}

// V14: the digest is that of the state, not of the way to it. Chains in another order give the
// same digest; any other entry gives another.
func TestDigest(t *testing.T) {
	t.Parallel()
	j := replaytest.Honest(replaytest.Options{
		Activities: 6, Effects: true, Trouble: true, Choose: rand.New(rand.NewPCG(3, 3)).IntN,
	})
	first := apply(t, j, len(j.Records)).Digest()
	other := replay.New(j.Header)
	main := 0
	for _, rec := range j.Records {
		if !rec.Chain.IsZero() {
			require.NoError(t, other.Apply(rec))
		} else {
			main++
		}
	}
	seen := make(map[journal.Digest]bool)
	for _, rec := range j.Records[:main] {
		require.NoError(t, other.Apply(rec))
		require.False(t, seen[other.Digest()])
		seen[other.Digest()] = true
	}
	require.Equal(t, first, other.Digest())
	require.Equal(t, first, j.Verify(true).Digest)
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	j := plain()
	job := replay.New(j.Header)
	require.ErrorContains(t, job.Apply(j.Records[1]), "does not follow entry 0")
	require.NoError(t, job.Apply(j.Records[0]))
	require.ErrorContains(t, job.Apply(j.Records[0]), "does not follow entry 1")
	broken := j.Records[1]
	broken.Body = broken.Body[:20]
	require.ErrorIs(t, job.Apply(broken), journal.ErrNotCanonical)
	foreign := replay.New(replay.Header{Job: journal.JobID{1}})
	require.ErrorContains(t, foreign.Apply(j.Records[0]), "does not follow")
}

// A read error gives no verdict.
func TestVerifyReadError(t *testing.T) {
	t.Parallel()
	j := plain()
	lost := errors.New("connection lost")
	r, err := replay.Verify(j.Header, j.Stored, j.Beside, func(yield func(journal.Record, error) bool) {
		_ = yield(j.Records[0], nil) && yield(journal.Record{}, lost)
	})
	require.Nil(t, r)
	require.ErrorIs(t, err, lost)
	require.ErrorContains(t, err, "after entry 1")
}

// J7: of an expired job only the tombstone is left: nothing is proved and nothing is violated.
// For an open job without entries something is.
func TestTombstone(t *testing.T) {
	t.Parallel()
	j := plain()
	j.Records = nil
	j.Stored = &replay.Stored{State: journal.JobExpired}
	r := j.Verify(true)
	require.Nil(t, r.First)
	require.Equal(t, replay.NotProved, r.Result(replay.V4).Status)
	require.Equal(t, "only the tombstone is left", r.Result(replay.V1).Note)
	requireOnly(t, j.Verify(false), replay.V3, 0, "no entry is here")
	j.Header.Head = journal.Head{}
	requireOnly(t, j.Verify(false), replay.V1, 0, "has no entries")
}

// V7: completion tasks that have not run are open, not wrong.
func TestMissingTasksAreOpen(t *testing.T) {
	t.Parallel()
	steps := 0
	for n := 1; ; n++ {
		j := replaytest.Honest(replaytest.Options{Mode: modes["stepwise"], Activities: 1, Steps: n})
		r := requireClean(t, j, true)
		if r.State == journal.JobCompleted {
			require.Equal(t, 2, r.OpenCount)
			require.Equal(t, "tasks", r.Open[0].What)
			steps = n
			break
		}
	}
	j := replaytest.Honest(replaytest.Options{Mode: modes["stepwise"], Activities: 1, Steps: steps + 1})
	require.Zero(t, requireClean(t, j, true).OpenCount)
}

// A stale message leaves a receipt of value 0 and ends its row, also after the close (1.7).
// Here it is an interrupt that was held, and that somebody released after the close. One that
// the journal did not mention leaves no entry (W12).
func TestStale(t *testing.T) {
	t.Parallel()
	interrupt := journal.GUID{5}
	build := func(told bool, change func(e *journal.Entry)) *replaytest.Journal {
		return plain().Lie(func(entries []*journal.Entry) []*journal.Entry {
			add := func(e journal.Entry) {
				e.Space, e.Job, e.Generation, e.Seq = entries[0].Space, entries[0].Job, 1, int64(len(entries))+1
				e.Activity, e.DAD = "", ",0"
				entries = append(entries, &e)
			}
			row := journal.Updated{GUID: interrupt, Kind: journal.MessageInterrupt, Held: collation.HeldStuck}
			if told {
				add(journal.Entry{
					Kind: journal.KindDeadLetter, GUID: interrupt, Updated: []journal.Updated{row},
					Trouble: &journal.Trouble{Reason: "stuck", Message: "refused"},
				})
				row.Held, row.NextAt = "", 1
				add(journal.Entry{
					Kind: journal.KindOperator, GUID: collation.OperatorGUID(interrupt, "retry", 0), Updated: []journal.Updated{row},
					Operator: &journal.Operator{Action: "retry", Who: "ann", Reason: "looked into it"},
				})
			}
			add(journal.Entry{Kind: journal.KindStale, GUID: interrupt, Ended: interrupt})
			change(entries[len(entries)-1])
			return entries
		})
	}
	r := requireClean(t, build(true, func(*journal.Entry) {}), false)
	require.Zero(t, r.OpenCount)
	require.Equal(t, "1 interrupts came from outside", r.Result(replay.V11).Note)
	requireOnly(t, build(true, func(e *journal.Entry) { e.Receipt = 10_000_000_000 }).Verify(false),
		replay.V4, 11, "position 5 (step 1) goes 0 → 1")
	requireOnly(t, build(true, func(e *journal.Entry) { e.Ended = journal.GUID{} }).Verify(false), replay.V10, 11, "still stands")
	requireOnly(t, build(true, func(e *journal.Entry) { e.DAD = ",0,0" }).Verify(false), replay.V11, 11, "is addressed to")
	requireOnly(t, build(false, func(*journal.Entry) {}).Verify(false), replay.V10, 9, "it has no row")
}

// failing is a job that fails while the request of another branch is open; the close cancels
// that request (C15).
func failing() *replaytest.Journal {
	return replaytest.Honest(replaytest.Options{
		Activities: 2, // both children of t
		Respond: func(string, int) *journal.Response {
			return &journal.Response{Kind: journal.ResponseTerminal, Code: 409, Error: &journal.Failure{Class: "error", Message: "no"}}
		},
	})
}

// C15: a close by failure ends everything that is open, once.
func TestCloseByFailure(t *testing.T) {
	t.Parallel()
	j := failing()
	r := requireClean(t, j, true)
	require.Equal(t, journal.JobFailed, r.State)
	require.Zero(t, r.OpenCount)
	closing := func(change func(e *journal.Entry)) *replay.Report {
		return j.Lie(func(entries []*journal.Entry) []*journal.Entry {
			for _, e := range entries {
				if e.Close != nil {
					require.Equal(t, 1, e.Abandoned)
					change(e)
				}
			}
			return entries
		}).Verify(false)
	}
	last := int64(len(j.Records))
	requireOnly(t, closing(func(e *journal.Entry) { e.CancelledByClose = nil }), replay.V10, last, "the close leaves the")
	requireOnly(t, closing(func(e *journal.Entry) { e.Abandoned = 0 }), replay.V6, last, "0 abandoned")
	requireOnly(t, closing(func(e *journal.Entry) { *e.Semaphore, e.Abandoned = -1, 2 }), replay.V6, last, "negative")
}

// held is a worker whose effect is parked and then retried by an operator: 4 the parked
// response, 5 the operator.
func held() *replaytest.Journal {
	n := 0
	return replaytest.Honest(replaytest.Options{
		Activities: 1, Choose: second,
		Respond: func(string, int) *journal.Response {
			if n++; n > 1 {
				return nil
			}
			return &journal.Response{Kind: journal.ResponseParked, Code: 500, Error: &journal.Failure{Class: "parked", Message: "unknown"}}
		},
	})
}

// V10, V11: an operator's entry must fit the row that it changes (E10).
func TestOperatorLies(t *testing.T) {
	t.Parallel()
	r := requireClean(t, held(), true)
	require.Equal(t, journal.JobCompleted, r.State)
	for name, c := range map[string]struct {
		check  replay.Check
		words  string
		change func(e *journal.Entry)
	}{
		"on nothing":       {replay.V10, "acts on no row", func(e *journal.Entry) { e.Updated = nil }},
		"by nobody":        {replay.V11, "does not say who", func(e *journal.Entry) { e.Operator = nil }},
		"another action":   {replay.V11, "does not derive from row", func(e *journal.Entry) { e.Operator.Action = "resolve" }},
		"at another place": {replay.V11, "which is addressed to w1 ,0,0", func(e *journal.Entry) { e.DAD = ",0" }},
		"a dead letter without a cause": {replay.V10, "or does not say why", func(e *journal.Entry) {
			e.Kind, e.Operator = journal.KindDeadLetter, nil
			e.Updated[0].Held = "stuck"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forged := held().Lie(func(entries []*journal.Entry) []*journal.Entry {
				c.change(entries[4])
				return entries
			})
			requireOnly(t, forged.Verify(false), c.check, 5, c.words)
		})
	}
}
