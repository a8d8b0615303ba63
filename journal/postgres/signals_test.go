package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

var resend = collation.Mode{Resend: 3_600_000_000}

// waitOf is the n-th wait of a job, for a key of topic t.
func waitOf(id journal.JobID, n int, key string) collation.Wait {
	return collation.Wait{
		GUID: journal.GUID{0: 0xaa, 14: byte(n >> 8), 15: byte(n)}, Job: id, Activity: "hook", DAD: ",0,0", Topic: "t", Key: key,
	}
}

// register commits a plan that registers the waits.
func register(t testing.TB, c store.Committer, id journal.JobID, waits ...collation.Wait) error {
	t.Helper()
	l, err := c.Load(t.Context(), []store.Want{{Job: id}}, true)
	if err != nil {
		return err
	}
	st := l.States[id]
	p := plan(st)
	for _, w := range waits {
		if w.Since == 0 {
			w.Since = st.Now
		}
		w.Origin = p.Entry.Seq
		p.Waits = append(p.Waits, w)
	}
	return c.Commit(t.Context(), []store.Chained{chained(st, p)})
}

// signalOf is a signal from outside to a key of topic t.
func signalOf(s *Store, key, caller string) *collation.Signal {
	return &collation.Signal{
		GUID: collation.SignalGUID(s.cfg.Space, "t", key, caller), Topic: "t", Key: key, Code: collation.CodeOK,
		Payload: json.RawMessage(`{"n":1}`),
	}
}

func mailOf(s *Store, x *collation.Signal) collation.RowKey {
	return collation.RowKey{Job: collation.Mailbox(s.cfg.Space, x.Topic, x.Key), GUID: x.GUID}
}

// put inserts the row of a signal, as a plan of a signal activity does.
func putSignal(t testing.TB, c store.Committer, id journal.JobID, x *collation.Signal) collation.RowKey {
	t.Helper()
	st := load(t, c, store.Want{Job: id})
	p := plan(st)
	if x.Sent == 0 {
		x.Sent = st.Now
	}
	row := must(x.Row(st.Job.Space))(t)
	p.Insert = []collation.Row{row}
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
	return collation.RowKey{Job: row.Job, GUID: row.GUID}
}

// J3, E13, P13: a wait is registered and its signal comes at the same moment, on two connections.
// Whichever is first, no wake-up is lost or doubled.
func TestE13SignalAndWaitAtOnce(t *testing.T) {
	t.Parallel()
	const rounds = 1000
	s := open(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	var late []collation.RowKey // signals that were kept: their waits came after them
	for n := range rounds {
		x := signalOf(s, fmt.Sprint(n), "")
		var registered, sent error
		var got store.Signalled
		delays := [2]time.Duration{rand.N(time.Millisecond), rand.N(time.Millisecond)}
		var both sync.WaitGroup
		both.Go(func() {
			time.Sleep(delays[0])
			registered = register(t, c, id, waitOf(id, n, x.Key))
		})
		both.Go(func() {
			time.Sleep(delays[1])
			got, sent = s.driven().Signal(t.Context(), x, resend)
		})
		devtest.AwaitAll(t, "the wait and the signal", both.Wait)
		require.NoError(t, registered)
		require.NoError(t, sent)
		if got.State == store.SignalKept {
			late = append(late, mailOf(s, x))
		}
	}
	require.NotEmpty(t, late)
	require.Less(t, len(late), rounds, "both orders were met")
	for len(late) > 0 {
		n := min(len(late), store.MaxBatch)
		out := must(s.driven().Deliver(t.Context(), late[:n], resend))(t)
		require.Equal(t, n, len(out), "the registration made them due")
		late = late[n:]
	}
	v := must(s.Job(t.Context(), id))(t)
	require.Empty(t, v.Waits)
	woken := map[journal.GUID]bool{}
	for _, r := range v.Rows {
		if r.Kind == journal.MessageWakeUp {
			x := must(journal.DecodeResponse(r.Body))(t)
			woken[x.Signal] = true
		}
	}
	require.Len(t, woken, rounds)
}

// J3: a transaction that locks several mailboxes always does so in one order, whatever the order
// of its waits or signals, so that no deadlock arises.
func TestJ3MailboxesAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	const rounds = 60
	s := fresh(t)
	ids := startJobs(t, s, "a", "b")
	helper := openCommitter(t, s)
	committers := []*committer{openCommitter(t, s), openCommitter(t, s)}
	for n := range rounds {
		x, y := signalOf(s, fmt.Sprint("x", n), ""), signalOf(s, fmt.Sprint("y", n), "")
		keys := []collation.RowKey{putSignal(t, helper, ids[0], x), putSignal(t, helper, ids[0], y)}
		var all sync.WaitGroup
		errs := make([]error, 4)
		for i, order := range [][2]int{{0, 1}, {1, 0}} {
			names := [2]string{x.Key, y.Key}
			all.Go(func() {
				errs[i] = register(t, committers[i], ids[i],
					waitOf(ids[i], 2*n, names[order[0]]), waitOf(ids[i], 2*n+1, names[order[1]]))
			})
			all.Go(func() {
				_, errs[2+i] = s.driven().Deliver(t.Context(), []collation.RowKey{keys[order[0]], keys[order[1]]},
					resend)
			})
		}
		devtest.AwaitAll(t, "the waits and the deliveries", all.Wait)
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
	require.NoError(t, s.run(t, "SELECT 1 / (deadlocks = 0)::int FROM pg_stat_database WHERE datname = current_database()"))
}

// blocker is a connection of another process, in a transaction.
func blocker(t testing.TB, s *Store, text string) *pgx.Conn {
	t.Helper()
	raw := must(pgx.Connect(t.Context(), s.cfg.DSN))(t)
	t.Cleanup(func() { require.NoError(t, raw.Close(context.Background())) })
	must(raw.Exec(t.Context(), "BEGIN; SET LOCAL search_path TO "+s.schema+"; "+text))(t)
	return raw
}

const someoneWaits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

// P15: a delivery that meets a wait which its timer is just ending waits for that transaction and
// decides again: the signal is kept, or the wait takes it.
func TestP15DeliveryWaitsForTheTimer(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			id := startJobs(t, s, "k")[0]
			require.NoError(t, register(t, openCommitter(t, s), id, waitOf(id, 1, "k")))
			timer := blocker(t, s, "DELETE FROM waits")
			got := make(chan store.Signalled, 1)
			go func() {
				x, err := s.driven().Signal(t.Context(), signalOf(s, "k", ""), resend)
				if err != nil {
					t.Errorf("signal: %v", err)
				}
				got <- x
			}()
			waitFor(t, s, someoneWaits)
			must(timer.Exec(t.Context(), end))(t)
			x := devtest.Await(t, "the answer to the signal", got)
			require.Equal(t, end == "COMMIT", x.State == store.SignalKept, "%+v", x)
			require.Equal(t, end == "ROLLBACK", x.State == store.SignalConsumed, "%+v", x)
		})
	}
}

// The oldest wait that takes a signal is found behind any number of waits that do not: more of
// the mailbox is read until one does, or none is left.
func TestDeliverReadsOn(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	now := load(t, c, store.Want{Job: id}).Now
	var waits []collation.Wait
	for n := range 40 { // they want a fresh one, and came after it
		w := waitOf(id, n, "k")
		w.MaxAge, w.Since = 1, now+collation.Micros(n)
		waits = append(waits, w)
	}
	for n := 40; n < 42; n++ {
		w := waitOf(id, n, "k")
		w.Since = now + collation.Micros(n)
		waits = append(waits, w)
	}
	require.NoError(t, register(t, c, id, waits...))
	var keys []collation.RowKey
	for n := range 3 {
		x := signalOf(s, "k", fmt.Sprint(n))
		x.Sent = now - collation.Micros(3600*1e6) + collation.Micros(n)
		keys = append(keys, putSignal(t, c, id, x))
	}
	out := must(s.driven().Deliver(t.Context(), []collation.RowKey{keys[2], keys[0], keys[1]}, resend))(t)
	require.Len(t, out, 2)
	for i := range out {
		require.Equal(t, waits[40+i].GUID, out[i].Row.GUID)
		x := must(journal.DecodeResponse(out[i].Row.Body))(t)
		require.Equal(t, keys[i].GUID, x.Signal, "the oldest signal first")
	}
	v := must(s.Job(t.Context(), id))(t)
	require.Len(t, v.Waits, 40)
}

// T11: a SignalAll reaches no more waits than a transaction has room for. A row that cannot be
// read is refused.
func TestT11DeliverIsBounded(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	var keys []collation.RowKey
	for n := range 3 {
		x := signalOf(s, "k", fmt.Sprint(n))
		x.All, x.Code = true, collation.CodePass
		keys = append(keys, putSignal(t, c, id, x))
	}
	require.NoError(t, s.run(t, fmt.Sprintf(`
		INSERT INTO waits (job, guid, mailbox, activity, dad, topic, key, repeat, max_age, count, since, origin)
		SELECT '%s', gen_random_uuid(), '%s', 'hook', ',0', 't', 'k', true, 0, 0, n, 1 FROM generate_series(1, %d) AS n`,
		id, keys[0].Job, collation.MaxReach+5)))
	out := must(s.driven().Deliver(t.Context(), keys[:1], resend))(t)
	require.Len(t, out, collation.MaxReach)

	require.NoError(t, s.run(t, fmt.Sprintf("UPDATE dispatches SET body = 'x' WHERE guid = '%s'", keys[1].GUID)))
	_, err := s.driven().Deliver(t.Context(), keys[1:], resend)
	require.ErrorIs(t, err, store.ErrRejected)
	require.ErrorIs(t, err, collation.ErrSignal)
}

// J3, W3: a Load that does not wait leaves out a mailbox that another transaction has locked, and
// others are not held up. The rows of its signals stay unlocked.
func TestLoadLeavesBusyMailboxesOut(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	holder, batch := openCommitter(t, s), openCommitter(t, s)
	held := putSignal(t, holder, id, signalOf(s, "held", ""))
	free := putSignal(t, holder, id, signalOf(s, "free", ""))
	wants := []store.Want{{Box: held.Job, Signal: held.GUID}, {Box: free.Job, Signal: free.GUID}}
	l := must(holder.Load(t.Context(), wants[:1], true))(t)
	require.NotNil(t, l.Boxes[held.Job].Named[held.GUID])

	l = must(batch.Load(t.Context(), wants, false))(t)
	require.Nil(t, l.Boxes[held.Job])
	require.NotNil(t, l.Boxes[free.Job].Named[free.GUID])
	require.NoError(t, holder.Rollback(t.Context()))
	require.NoError(t, batch.Rollback(t.Context()))

	l = must(batch.Load(t.Context(), wants, false))(t)
	require.Len(t, l.Boxes, 2)
	require.NoError(t, batch.Rollback(t.Context()))
}

// J5: a batch has one time, whatever it waited for and however many jobs it has. By that time an
// engine knows which rows it sends right after the commit.
func TestJ5OneTimeForABatch(t *testing.T) {
	t.Parallel()
	s := open(t)
	ids := startJobs(t, s, "a", "b", "c", "d", "e")
	c := openCommitter(t, s)
	wants := make([]store.Want, len(ids))
	for i, id := range ids {
		wants[i] = store.Want{Job: id, Receipt: id.Start()}
	}
	wants = append(wants, store.Want{Job: journal.JobID{9}, Receipt: journal.GUID{9}}) // that one is not there
	for _, wait := range []bool{false, true} {
		l := must(c.Load(t.Context(), wants, wait))(t)
		require.Len(t, l.States, len(ids))
		for _, st := range l.States {
			require.Equal(t, l.Now, st.Now)
		}
		require.NoError(t, c.Rollback(t.Context()))
	}
}

// C15: a signal is delivered while a close reads what it cancels. The close sees the wait, and
// then loses it and decides again, or it sees the wake-up. If it saw neither it would leave both
// behind.
func TestC15CloseSeesTheWaitOrItsWakeUp(t *testing.T) {
	t.Parallel()
	for _, repeat := range []bool{false, true} {
		s := open(t)
		id := startJobs(t, s, "k")[0]
		c := openCommitter(t, s)
		w := waitOf(id, 1, "k")
		w.Repeat = repeat
		require.NoError(t, register(t, c, id, w))
		// A row that a worker locks for a while, as a Tx effect does.
		worker := blocker(t, s, "SELECT 1 FROM dispatches WHERE kind = 'start' FOR UPDATE")
		st := load(t, c, store.Want{Job: id})
		read := make(chan error)
		go func() { read <- c.More(t.Context(), map[journal.JobID]*collation.Need{id: {AllRows: true}}) }()
		waitFor(t, s, someoneWaits)
		x := signalOf(s, "k", "")
		x.Code = collation.CodePass
		got := must(s.driven().Signal(t.Context(), x, resend))(t)
		require.Equal(t, store.SignalConsumed, got.State)
		must(worker.Exec(t.Context(), "COMMIT"))(t)
		require.NoError(t, devtest.Await(t, "what the close reads", read))

		if st.Rows[got.Out[0].Row.GUID] != nil {
			continue
		}
		require.NotNil(t, st.Waits[w.GUID], "repeat: %t", repeat)
		p := plan(st)
		p.CancelWaits = []collation.CancelledWait{{GUID: w.GUID, Count: st.Waits[w.GUID].Count}}
		require.ErrorIs(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}), store.ErrLost, "repeat: %t", repeat)
	}
}

// C10, C15: a repeating hook gets one signal after another while its job closes. The close does
// not lose for ever: what it reads under the locks of the mailboxes cannot change before it
// writes.
func TestC15CloseUnderAFloodOfSignals(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	w := waitOf(id, 1, "k")
	w.Repeat = true
	require.NoError(t, register(t, c, id, w))
	var done atomic.Bool
	var flood sync.WaitGroup
	for who := range 6 {
		flood.Go(func() {
			for n := 0; !done.Load(); n++ {
				x := signalOf(s, "k", fmt.Sprint(who, " ", n))
				x.Code = collation.CodePass
				if _, err := s.driven().Signal(t.Context(), x, resend); err != nil {
					t.Errorf("signal: %v", err)
				}
			}
		})
	}
	defer devtest.AwaitAll(t, "the end of the flood", flood.Wait)
	defer done.Store(true)
	for range 50 {
		st := load(t, c, store.Want{Job: id})
		require.NoError(t, c.More(t.Context(), map[journal.JobID]*collation.Need{id: {AllRows: true}}))
		p := plan(st)
		p.CancelWaits = []collation.CancelledWait{{GUID: w.GUID, Count: st.Waits[w.GUID].Count}}
		err := c.Commit(t.Context(), []store.Chained{chained(st, p)})
		require.NoError(t, err)
		w.GUID[1]++
		require.NoError(t, register(t, c, id, w))
	}
}

// 1.11, T11: more signals were kept for a repeating hook than one transaction delivers. The
// signal that ends the hook, sent once it waits, overtakes none of them, whichever of their
// messages comes first.
func TestKeptSignalsAreNotOvertaken(t *testing.T) {
	t.Parallel()
	const many = 2*collation.MaxDue + 40
	s := open(t)
	id := startJobs(t, s, "k")[0]
	var keys []collation.RowKey
	for n := range many {
		x := signalOf(s, "k", fmt.Sprint(n))
		x.Code = collation.CodePass
		got := must(s.driven().Signal(t.Context(), x, resend))(t)
		require.Equal(t, store.SignalKept, got.State)
		keys = append(keys, mailOf(s, x))
	}
	w := waitOf(id, 1, "k")
	w.Repeat = true
	require.NoError(t, register(t, openCommitter(t, s), id, w))
	last := signalOf(s, "k", "last")
	got := must(s.driven().Signal(t.Context(), last, resend))(t)
	require.Equal(t, store.SignalKept, got.State, "it waits its turn")
	require.Len(t, got.Out, collation.MaxDue)
	woken := got.Out
	for _, k := range []collation.RowKey{mailOf(s, last), keys[many-1], mailOf(s, last)} {
		out := must(s.driven().Deliver(t.Context(), []collation.RowKey{k}, resend))(t)
		woken = append(woken, out...)
	}
	require.Len(t, woken, many+1)
	for n := range woken {
		x := must(journal.DecodeResponse(woken[n].Row.Body))(t)
		require.Equal(t, n+1, x.Number)
		if n < many {
			require.Equal(t, keys[n].GUID, x.Signal)
		} else {
			require.Equal(t, last.GUID, x.Signal)
		}
	}
}
