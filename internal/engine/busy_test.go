package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// message is the start of a job, as the bus brings it.
func startOf(job journal.JobID) *message {
	return &message{
		delivery: &acked{done: make(chan string, 10)}, epoch: 1, flow: flowKey{"one", "1"},
		msg: collation.Message{
			Kind: journal.MessageStart, Job: job, GUID: job.Start(), Row: job.Start(), Activity: "start",
			DAD: collation.RootDAD,
		},
	}
}

// A loop that decides on one message for long is seen while it does, by name in the log, and not
// afterwards. One that waits for the database is told apart, and seen later.
func TestABusyLoopIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		said := &lines{}
		l, _ := over(t, &hooked{}, Config{Logger: said.logger(), Committers: 1})
		ctx, end := context.WithCancel(t.Context())
		watched := make(chan error, 1)
		go func() { watched <- l.watch(ctx) }()
		own := l.loops[0]
		own.enter()
		require.Nil(t, l.Busy())
		it := startOf(journal.JobID{7})
		own.progress.begin(it.about(), 0)
		time.Sleep(busyAfter - time.Millisecond)
		require.Nil(t, l.Busy())
		time.Sleep(5 * time.Second)
		busy := l.Busy()
		require.Equal(t, "an engine of this process has been busy with one message for 6 s", busy.String())
		require.Equal(t, store.Busy{For: 7*time.Second - time.Millisecond, Job: it.msg.Job, Message: it.msg.GUID},
			busy.Told())
		synctest.Wait()
		require.Len(t, said.all, 1, "not one line for each look")
		require.Contains(t, said.all[0], "job="+it.msg.Job.String())
		require.Contains(t, said.all[0], "message="+it.msg.GUID.String())

		back := own.progress.wait() // it reads the flow
		time.Sleep(deadAfter - time.Millisecond)
		require.Nil(t, l.Busy())
		time.Sleep(time.Millisecond)
		require.Equal(t, "a commit of this process has been waiting for the database for 10 s", l.Busy().String())
		require.Zero(t, l.Busy().Told(), "no message holds the engine up")
		back()
		require.Nil(t, l.Busy())
		require.Equal(t, 7*time.Second-time.Millisecond, own.progress.end(), "without what it waited for")
		own.progress.leave()
		time.Sleep(time.Minute)
		require.Nil(t, l.Busy(), "it waits for work")
		require.LessOrEqual(t, len(said.all), 2)
		end()
		require.NoError(t, <-watched)
	})
}

// A loop that waits for what others hold is not busy, and one whose database is silent is.
func TestASilentDatabaseIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		silent := func([]store.Want) error { time.Sleep(20 * time.Second); return nil }
		for patient, want := range map[bool]bool{false: true, true: false} {
			l, st := over(t, &hooked{load: silent}, Config{})
			l.policy = map[bool]policy{true: policyWait}[patient]
			l.loops = []*loop{l}
			job := startsOne(t, st, deployed(t, st, oneWorker("1")), collation.Mode{Resend: 1e6})
			done := make(chan bool)
			go func() { done <- l.carry(t.Context(), []item{startOf(job)}) }()
			time.Sleep(15 * time.Second)
			require.Equal(t, want, l.Busy() != nil)
			require.True(t, <-done)
			require.Nil(t, l.Busy())
		}
	})
}

// A batch that has decided for a second commits what it has, and leaves the rest to the next.
func TestAFullBatchLeavesTheRest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, st := over(t, &hooked{}, Config{})
		ref := deployed(t, st, oneWorker("1"))
		job := startsOne(t, st, ref, collation.Mode{Resend: 1e6})
		_, err := l.flows.Get(t.Context(), ref) // so that one load has all that the first one needs
		require.NoError(t, err)
		first, second, third := startOf(job), startOf(journal.JobID{1}), startOf(journal.JobID{2})
		tx, err := l.connection(t.Context())
		require.NoError(t, err)
		items := []item{first, second, third}
		b := l.batch(&store.Loaded{}, true, items...)
		b.timing.deciding = time.Hour
		loaded, err := tx.Load(t.Context(), b.wants(), false)
		require.NoError(t, err)
		b.meet(loaded)
		require.NoError(t, b.decide(t.Context(), tx))
		require.Equal(t, []item{first}, b.became(fateCommit), "each batch decides something")
		require.Equal(t, []item{second, third}, b.became(fateLater))
		require.NoError(t, tx.Rollback(t.Context()))
	})
}

// stingy never loads what a decision asks for.
type stingy struct{ store.Engine }

func (s stingy) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	c, err := s.Engine.Committer(ctx, patient)
	return stingyCommitter{c}, err
}

type stingyCommitter struct{ store.Committer }

func (stingyCommitter) More(context.Context, map[journal.JobID]*collation.Need) error { return nil }

// J6: a decision that never has enough state is held by itself, and its dead letter names the
// limit and the message. The others of its batch go on.
func TestJ6WhoAsksTooOftenIsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := &hooked{}
		l, st := over(t, h, Config{HotBytes: -1})
		h.Engine = stingy{st}
		asks := oneWorker("1").Output(map[string]any{"x": "${ a.output }"}) // read as soon as nothing is left
		ref := deployed(t, st, asks)
		job := startsOne(t, st, ref, collation.Mode{Resend: 1e6})
		_, err := l.flows.Get(t.Context(), ref)
		require.NoError(t, err)
		asksMore := startOf(job)
		asksMore.flow = flowKey{}  // no hint of what to load
		asksMore.msg.Activity = "" // nor an instance
		require.True(t, l.carry(t.Context(), []item{asksMore}))
		letters := lettersOf(t, st)
		require.Len(t, letters, 1)
		require.Equal(t, collation.ReasonLoads, letters[0].Letter.Reason)
		for _, part := range []string{"more than 32 times, the limit", job.String(), "start " + job.Start().String(), "report it"} {
			require.True(t, strings.Contains(letters[0].Letter.Message, part), "%s: %s", part, letters[0].Letter.Message)
		}
	})
}
