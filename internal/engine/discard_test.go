package engine

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// watched is what a bench discarded, and what its store shows or refuses.
type watched struct {
	discarded []collation.RowKey
	refuse    func([]store.Chained) error // of commits
	order     *collation.Row
	tombstone journal.JobID
}

func (w *watched) commit(plans []store.Chained) error {
	if w.refuse != nil {
		if err := w.refuse(plans); err != nil {
			return err
		}
	}
	for i := range plans {
		w.discarded = append(w.discarded, plans[i].Plan.Discard...)
	}
	return nil
}

func (w *watched) loaded(l *store.Loaded) {
	if w.order != nil {
		l.Orders[w.order.Job] = w.order
	}
	if !w.tombstone.IsZero() {
		l.Tombstones[w.tombstone] = true
	}
}

// bench is a loop for handmade messages.
func bench(t *testing.T, w *watched) (*loop, *memstore.Store) {
	t.Helper()
	return over(t, &hooked{commit: w.commit, loaded: w.loaded}, Config{})
}

func handmade(kind journal.MessageKind, n byte) (*message, *acked) {
	job := journal.JobID{n, 6: 0x80, 8: 0x80}
	d := &acked{done: make(chan string, 1)}
	return &message{delivery: d, epoch: 1, msg: collation.Message{
		Kind: kind, Job: job, GUID: job.Start(), Row: job.Start(), DAD: collation.RootDAD,
	}}, d
}

// C10: the row of a message whose job never existed ends with its dead letter.
func TestC10RowsWithoutAJobAreEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := &watched{}
		c, st := bench(t, w)
		it, d := handmade(journal.MessageOutcome, 1)
		c.carry(t.Context(), []item{it})
		require.Equal(t, "term", <-d.done)
		require.Equal(t, []collation.RowKey{it.key()}, w.discarded)
		require.Len(t, lettersOf(t, st), 1)
		// A child that was refused cannot be interrupted, and nobody has to know.
		it, d = handmade(journal.MessageInterrupt, 2)
		c.carry(t.Context(), []item{it})
		require.Equal(t, "ack", <-d.done)
		require.Equal(t, it.key(), w.discarded[1])
		require.Len(t, lettersOf(t, st), 1)
	})
}

// C5: if only the tombstone of a message's job is left, the message's row ends and is counted;
// nothing else happens.
func TestC5RowsOfTombstonesAreEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		it, d := handmade(journal.MessageOutcome, 1)
		w := &watched{tombstone: it.msg.Job}
		c, st := bench(t, w)
		c.carry(t.Context(), []item{it})
		require.Equal(t, "ack", <-d.done)
		require.Equal(t, []collation.RowKey{it.key()}, w.discarded)
		require.Empty(t, lettersOf(t, st))
	})
}

// C10: the one refused signal of a batch becomes a dead letter and delays no other. Trouble
// with the database is a retry.
func TestC10RefusedSignals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := &watched{}
		c, st := bench(t, w)
		items := make([]*message, 4)
		for i := range items {
			items[i], _ = handmade(journal.MessageSignal, byte(i+1))
			x := collation.Signal{GUID: items[i].msg.GUID, Topic: "t", Key: strconv.Itoa(i), Code: 200, Payload: []byte(`1`)}
			row, err := x.Row("test")
			require.NoError(t, err)
			items[i].msg.Job = row.Job
			if i == 1 {
				row.Body = []byte("{")
			}
			tx, err := st.Committer(t.Context(), true)
			require.NoError(t, err)
			require.NoError(t, tx.Commit(
				t.Context(),
				[]store.Chained{
					{Plan: &collation.Plan{Job: row.Job, RowWrites: collation.RowWrites{Insert: []collation.Row{row}}}},
				},
			))
		}
		unreadable, untaken, calls := items[1], items[2], 0
		w.refuse = func(plans []store.Chained) error {
			calls++
			for _, p := range plans {
				switch {
				case calls == 1:
					return errors.Join(store.ErrUnavailable, errors.New("no route to host"))
				case p.Plan.Job == untaken.msg.Job && len(p.Plan.Update) > 0:
					return store.ErrRejected
				}
			}
			return nil
		}
		require.True(t, c.carry(t.Context(), carried(items...)))
		for i, it := range items {
			how := "ack"
			if it == unreadable || it == untaken {
				how = "term"
			}
			require.Equal(t, how, <-it.delivery.(*acked).done, i)
		}
		require.ElementsMatch(t, []collation.RowKey{unreadable.key(), untaken.key()}, w.discarded)
	})
}

// T3: an order that cannot be read becomes a dead letter. Its row, if any, stays: an engine
// that can read it may still begin the child.
func TestT3UnreadableOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		it, d := handmade(journal.MessageStart, 1)
		w := &watched{order: &collation.Row{
			GUID: it.msg.Row, Job: it.msg.Job, Kind: journal.MessageStart, Body: []byte("{"),
		}}
		c, st := bench(t, w)
		c.carry(t.Context(), []item{it})
		require.Equal(t, "term", <-d.done)
		require.Empty(t, w.discarded)
		require.Equal(t, "undecodable", lettersOf(t, st)[0].Letter.Reason)
	})
}

// T2: a message that has to wait for another one of its instance comes again after 50 to 150
// ms, a few times. Then it is left to its row, so that it does not block its lane for the other
// message, should that be lost.
func TestT2LaterComesAgainSoon(t *testing.T) {
	t.Parallel()
	c, _ := bench(t, &watched{})
	for range 100 {
		d := &delayed{count: laterTimes - 1}
		it := &message{delivery: d, epoch: 1, plan: &collation.Plan{Outcome: collation.Later, Done: true}}
		b := c.batch(&store.Loaded{}, true, it)
		b.decisions[0].commits(it.plan)
		require.Empty(t, c.settle(t.Context(), b))
		require.GreaterOrEqual(t, d.by, 50*time.Millisecond)
		require.Less(t, d.by, 150*time.Millisecond)
	}
	d := &delayed{acked: acked{make(chan string, 1)}, count: laterTimes}
	c.later(d)
	require.Equal(t, "ack", <-d.done)
	require.Zero(t, d.by)
}

type delayed struct {
	acked
	count int
	by    time.Duration
}

func (d *delayed) Count() int { return d.count }

func (d *delayed) Nak(by time.Duration) error { d.by = by; return nil }
