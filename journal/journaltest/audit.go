package journaltest

import (
	"bytes"
	"errors"
	"iter"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
)

var audits = map[string]func(*bench){
	"jobs come in the order of their ids":              auditJobs,
	"an unknown job is not found":                      auditUnknown,
	"the visitor's error is returned":                  auditError,
	"what is stored is what the entries say (J1)":      auditStored,
	"main chain first, then the effects, by seq (2.5)": auditOrder,
}

// byHand are the checks that handmade plans fail: they name rows, waits and digits of no flow.
var byHand = []replay.Check{replay.V4, replay.V6, replay.V10, replay.V11, replay.V13, replay.V16}

// audit reads jobs as a verifier does and compares tables with entries: whole chains, right
// hashes, digits, semaphore and rows as the entries moved them (J1, J8, J9).
func (b *bench) audit(ids ...journal.JobID) {
	b.Helper()
	for _, id := range ids {
		hand := slices.ContainsFunc(b.chain(id, journal.MainChain), func(e *journal.Entry) bool {
			return e.Operator != nil && e.Operator.Action == "suite"
		})
		err := b.s.Audit(b.ctx(), id, func(s *store.Stored, records iter.Seq2[journal.Record, error]) error {
			report, err := s.Verify(nil, records)
			for i := 0; err == nil && i < len(report.Checks); i++ {
				x := &report.Checks[i]
				require.True(b, x.Status != replay.Violated || hand && slices.Contains(byHand, x.Check), "%v", x.Violation)
			}
			return err
		})
		require.NoError(b, err)
	}
}

// maxAudited bounds how many jobs of a case are audited at its end.
const maxAudited = 12

// audited audits the jobs of a case, some of many.
func (b *bench) audited() {
	b.Helper()
	var ids []journal.JobID
	for id, err := range b.s.AuditJobs(b.ctx(), nil) {
		if require.NoError(b, err); len(ids) < maxAudited {
			ids = append(ids, id)
		}
	}
	b.audit(ids...)
}

// chain decodes the entries of one chain.
func (b *bench) chain(id journal.JobID, chain journal.GUID) []*journal.Entry {
	b.Helper()
	var out []*journal.Entry
	err := b.s.Audit(b.ctx(), id, func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
		for r, err := range records {
			if err != nil {
				return err
			}
			if r.Chain == chain {
				e, err := journal.Decode(r)
				require.NoError(b, err)
				out = append(out, e)
			}
		}
		return nil
	})
	require.NoError(b, err)
	return out
}

func auditJobs(b *bench) {
	none := slices.Collect(first(b.s.AuditJobs(b.ctx(), nil)))
	require.Empty(b, none)
	f := b.deploy(one)
	var list []store.Start
	for i := range 40 {
		list = append(list, starting(f, string(rune('A'+i)), `{}`))
	}
	out := got(b.s.Start(b.ctx(), list, b.mode))(b)
	var ids []journal.JobID
	for _, o := range out {
		ids = append(ids, o.Job)
	}
	byID := func(x, y journal.JobID) int { return bytes.Compare(x[:], y[:]) }
	sorted := slices.SortedFunc(slices.Values(ids), byID)
	require.Equal(b, sorted, slices.Collect(first(b.s.AuditJobs(b.ctx(), nil))))
	some := []journal.JobID{ids[5], ids[1], {1}, ids[9]}
	want := slices.SortedFunc(slices.Values([]journal.JobID{ids[5], ids[1], ids[9]}), byID)
	require.Equal(b, want, slices.Collect(first(b.s.AuditJobs(b.ctx(), some))))
	for id, err := range b.s.AuditJobs(b.ctx(), nil) { // a reader may stop
		require.NoError(b, err)
		require.Equal(b, sorted[0], id)
		break
	}
}

// first yields the values of a sequence up to its first error.
func first(seq iter.Seq2[journal.JobID, error]) iter.Seq[journal.JobID] {
	return func(yield func(journal.JobID) bool) {
		for id, err := range seq {
			if err != nil || !yield(id) {
				return
			}
		}
	}
}

func auditUnknown(b *bench) {
	err := b.s.Audit(b.ctx(), journal.JobID{1}, func(*store.Stored, iter.Seq2[journal.Record, error]) error {
		b.Error("nothing is there to visit")
		return nil
	})
	require.ErrorIs(b, err, store.ErrNotFound)
	space := got(b.s.Space(b.ctx()))(b)
	require.NotEmpty(b, space)
}

func auditError(b *bench) {
	id := b.start(b.deploy(one), "k")
	mine := errors.New("seen enough")
	err := b.s.Audit(b.ctx(), id, func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
		for range records {
			break
		}
		return mine
	})
	require.ErrorIs(b, err, mine)
}

func auditStored(b *bench) {
	id := b.requested(fork, "k")
	l := b.lease(b.request(id, "right"), "w")
	b.startEffect(l, effect("pay", 0))
	b.answer(id, "left", success(`1`))
	v := b.view(id)
	err := b.s.Audit(b.ctx(), id, func(s *store.Stored, _ iter.Seq2[journal.Record, error]) error {
		require.Equal(b, v.JobSummary.Job, s.Job)
		require.Len(b, s.Instances, len(v.Instances))
		for _, i := range v.Instances {
			require.Equal(b, i.Ledger, s.Instances[i.Key].Ledger)
		}
		require.Len(b, s.Rows, len(v.Rows))
		for _, r := range v.Rows {
			require.Equal(b, r, s.Rows[r.GUID])
		}
		require.Len(b, s.Effects, 1)
		require.Equal(b, store.EffectStarted, s.Effects[0].State)
		require.Empty(b, s.Receipts, "each went with its row (W12)")
		return nil
	})
	require.NoError(b, err)
}

func auditOrder(b *bench) {
	id := b.requested(fork, "k")
	for _, activity := range []string{"left", "right"} {
		l := b.lease(b.request(id, activity), "w")
		b.startEffect(l, effect(activity, 0))
		b.finishEffect(l, completed(effect(activity, 0), `1`))
		b.answer(id, activity, success(`1`))
	}
	var order []journal.Record
	err := b.s.Audit(b.ctx(), id, func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
		for r, err := range records {
			if err != nil {
				return err
			}
			order = append(order, r)
		}
		return nil
	})
	require.NoError(b, err)
	chains := 0
	for i, r := range order {
		if i == 0 || r.Chain != order[i-1].Chain {
			chains++
			require.Equal(b, int64(1), r.Seq, "a chain comes in one piece")
			continue
		}
		require.Equal(b, order[i-1].Seq+1, r.Seq)
	}
	require.Equal(b, 3, chains)
	require.Equal(b, journal.MainChain, order[0].Chain)
}
