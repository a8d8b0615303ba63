package engine

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

type acked struct {
	done chan string
}

func (a *acked) finish(how string) error { a.done <- how; return nil }

// C10: a message whose state the store cannot read is held, with a dead letter. It is not
// handed back for ever.
func TestC10UnreadableStateHoldsTheRow(t *testing.T) {
	t.Parallel()
	cannotRead(t, store.Rejected("a stored entry cannot be read"), func(t *testing.T, v *store.JobView) {
		require.Equal(t, journal.JobOpen, v.State)
		require.Equal(t, collation.HeldStuck, v.Rows[0].Held)
		require.Equal(t, "stuck", v.Dead[0].Letter.Reason)
	})
}

// S9: a message that reads bytes that were changed quarantines its job, once, with a dead letter
// that names them; its row stays as it is.
func TestS9ChangedBytesQuarantineTheJob(t *testing.T) {
	t.Parallel()
	cannotRead(t, store.SamePayload(journal.JobID{1}, journal.Digest{2}, []byte(`3`)),
		func(t *testing.T, v *store.JobView) {
			require.Equal(t, journal.JobQuarantined, v.State)
			require.Empty(t, v.Rows[0].Held)
			require.True(t, v.Rows[0].Dead)
			require.Equal(t, collation.ReasonChanged, v.Dead[0].Letter.Reason)
			require.Contains(t, v.Dead[0].Letter.Message, "payloads of job 01000000-")
			require.Equal(t, int64(2), v.Head.Seq, "one entry says it")
		})
}

// cannotRead delivers the start of a job twice to a store that refuses to load results.
func cannotRead(t *testing.T, cause error, then func(*testing.T, *store.JobView)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		said := &lines{}
		cannot := func(wants []store.Want) error { // entries with a result, as an adapter reports it
			if slices.ContainsFunc(wants, func(w store.Want) bool { return len(w.Results) > 0 }) {
				return fmt.Errorf("load: %w", cause)
			}
			return nil
		}
		c, st := over(t, &hooked{load: cannot}, Config{Logger: said.logger()})
		ref := deployed(t, st, oneWorker("1"))
		job := startsOne(t, st, ref, collation.Mode{Resend: 1e6, Fold: true})
		_, err := c.flows.Get(ctx, ref)
		require.NoError(t, err)
		d := &acked{done: make(chan string, 1)}
		for range 2 {
			c.carry(ctx, []item{&message{
				delivery: d, epoch: 1, flow: flowKey{"one", "1"},
				msg: collation.Message{
					Kind: journal.MessageStart, Job: job, GUID: job.Start(), Row: job.Start(), Activity: "start",
					DAD: collation.RootDAD,
				},
			}})
			require.Equal(t, "ack", <-d.done)
		}
		v, err := st.Job(ctx, job)
		require.NoError(t, err)
		require.Len(t, v.Dead, 1)
		then(t, v)
		require.Contains(t, said.all[1], "level=WARN")
		require.Contains(t, said.all[1], "reason="+v.Dead[0].Letter.Reason)
	})
}

func (a *acked) Message() *transport.Message { return &transport.Message{} }
func (a *acked) Err() error                  { return nil }
func (a *acked) Count() int                  { return 1 }
func (a *acked) Ack() error                  { return a.finish("ack") }
func (a *acked) Nak(time.Duration) error     { return a.finish("nak") }
func (a *acked) InProgress() error           { return nil }
func (a *acked) Term(string) error           { return a.finish("term") }
