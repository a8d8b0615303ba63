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

var audits = cases{
	"jobs come in the order of their ids": auditJobs,
	"the visitor's error is returned":     auditError,
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
			b.reads(s)
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

// reads requires that what is stored of a job is what its readers show.
func (b *bench) reads(s *store.Stored) {
	b.Helper()
	v := b.view(s.Job.ID)
	if v.State == journal.JobExpired {
		return // requireTombstone compares more
	}
	require.Equal(b, v.Job, s.Job)
	for _, i := range v.Instances {
		require.Equal(b, i.Instance, s.Instances[i.Key])
	}
	for _, r := range s.Rows {
		require.Contains(b, v.Rows, r)
	}
	require.Len(b, s.Effects, len(got(b.s.JobEffects(b.ctx(), s.Job.ID))(b)))
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
	audited := func(only []journal.JobID) (ids []journal.JobID) {
		for id, err := range b.s.AuditJobs(b.ctx(), only) {
			require.NoError(b, err)
			ids = append(ids, id)
		}
		return ids
	}
	require.Empty(b, audited(nil))
	ids := b.jobs(40)
	byID := func(x, y journal.JobID) int { return bytes.Compare(x[:], y[:]) }
	some := []journal.JobID{ids[5], ids[1], {1}, ids[9]}
	want := slices.SortedFunc(slices.Values([]journal.JobID{ids[5], ids[1], ids[9]}), byID)
	require.Equal(b, want, audited(some))
	slices.SortFunc(ids, byID)
	require.Equal(b, ids, audited(nil))
	for id, err := range b.s.AuditJobs(b.ctx(), nil) { // a reader may stop
		require.NoError(b, err)
		require.Equal(b, ids[0], id)
		break
	}
}

func auditError(b *bench) {
	id := b.jobs(1)[0]
	mine := errors.New("seen enough")
	err := b.s.Audit(b.ctx(), id, func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
		for range records {
			break
		}
		return mine
	})
	require.ErrorIs(b, err, mine)
}
