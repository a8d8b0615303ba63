package journaltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var letters = map[string]func(*bench){
	"a message without a row is a dead letter alone (T3)": letterForeign,
	"letters are listed newest first, within the limit":   letterList,
	"letters are asked for by what they are of":           letterFilter,
	"what has ended is stale, what is not is not found":   letterEnded,
	"a dead letter without a row ends by an answer only":  letterAlone,
	"the oldest stray letters are dropped, and no others": letterStrays,
	"stray letters are bounded by their bytes, too":       letterBytes,
}

func (b *bench) letters(all bool) []store.DeadView {
	b.Helper()
	out := got(b.s.DeadLetters(b.ctx(), store.DeadFilter{All: all, Limit: 100}))(b)
	return out
}

func letterForeign(b *bench) {
	d := collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "undecodable", Message: "unexpected end of JSON"}
	require.NoError(b, b.s.DeadLetter(b.ctx(), d, []byte{0, 0xff, '{'}))
	foreign := collation.DeadLetter{Job: journal.JobID{1}, Kind: journal.MessageResponse, Reason: "foreign", Message: "no such job"}
	require.NoError(b, b.s.DeadLetter(b.ctx(), foreign, nil))
	list := b.letters(false)
	require.Len(b, list, 2)
	require.Equal(b, foreign, list[0].Letter)
	require.Equal(b, d, list[1].Letter)
	require.Empty(b, list[0].Key)
	require.Equal(b, "open", list[0].State)
	require.Positive(b, list[0].At)
}

func letterList(b *bench) {
	for i := range 9 {
		require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Reason: "undecodable", Message: fmt.Sprint(i)}, nil))
	}
	list := got(b.s.DeadLetters(b.ctx(), store.DeadFilter{All: true, Limit: 4}))(b)
	require.Len(b, list, 4)
	for i, l := range list {
		require.Equal(b, fmt.Sprint(8-i), l.Letter.Message)
	}
	require.Len(b, b.letters(true), 9)
	rest := got(b.s.DeadLetters(b.ctx(), store.DeadFilter{All: true, Before: list[3].ID}))(b)
	require.Len(b, rest, 5)
	require.Equal(b, "4", rest[0].Letter.Message)
}

// letterFilter lists the dead letters of one flow, topic, reason, prefix of a key, time or job.
func letterFilter(b *bench) {
	r := b.asked()
	for range store.MaxRuns {
		b.lease(r, "w")
	}
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w", b.live().ID())
	require.ErrorIs(b, err, store.ErrExhausted)
	require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Reason: "foreign", Message: "else"}, nil))
	v := b.view(r.Job)
	at := b.letters(false)[0].At // of the newest, which has no job
	for _, c := range []struct {
		f    store.DeadFilter
		want int
	}{
		{store.DeadFilter{}, 2},
		{store.DeadFilter{Flow: v.Flow.Name}, 1},
		{store.DeadFilter{Flow: "other"}, 0},
		{store.DeadFilter{Topic: r.Topic}, 1},
		{store.DeadFilter{Topic: "other"}, 0},
		{store.DeadFilter{Reason: "foreign"}, 1},
		{store.DeadFilter{Reason: "foreign", Flow: v.Flow.Name}, 0},
		{store.DeadFilter{Prefix: v.Key[:1]}, 1},
		{store.DeadFilter{Prefix: v.Key + "%"}, 0},
		{store.DeadFilter{From: at}, 1},
		{store.DeadFilter{To: at}, 1},
		{store.DeadFilter{From: at, To: at + 1, Reason: "foreign"}, 1},
		{store.DeadFilter{From: at + 1}, 0},
		{store.DeadFilter{Jobs: []journal.JobID{r.Job}}, 1},
		{store.DeadFilter{Jobs: []journal.JobID{{9}}}, 0},
	} {
		list := got(b.s.DeadLetters(b.ctx(), c.f))(b)
		require.Len(b, list, c.want, "%+v", c.f)
		for _, l := range list {
			if l.Letter.Job == r.Job {
				require.Equal(b, v.Flow.Name, l.Flow)
				require.Equal(b, r.Topic, l.Topic)
			}
		}
	}
}

// letterEnded holds a request that ran too often, and releases it once.
func letterEnded(b *bench) {
	require.ErrorIs(b, b.s.Act(b.ctx(), store.Action{ID: 99, Retry: true}), store.ErrNotFound)
	r := b.asked()
	for range store.MaxRuns {
		b.lease(r, "w")
	}
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w", b.live().ID())
	require.ErrorIs(b, err, store.ErrExhausted)
	row := b.request(r.Job, "work")
	require.Equal(b, []any{collation.HeldStuck, true}, []any{row.Held, row.Dead})
	require.Empty(b, b.due(10))
	letter := b.letters(false)[0]
	require.Equal(b, []any{r.GUID, "runs", "work", "001100000000000"},
		[]any{letter.Letter.Row, letter.Letter.Reason, letter.Letter.Activity, letter.Letter.Ledger.String()})
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: letter.ID, Retry: true, Who: "ann"}))
	require.ErrorIs(b, b.s.Act(b.ctx(), store.Action{ID: letter.ID, Retry: true, Who: "bob"}), store.ErrStale)
	require.Equal(b, "retried", b.letters(true)[0].State)
	require.Len(b, b.due(10), 1, "due at once")
	require.Equal(b, 1, b.lease(r, "w").Runs, "the runs are counted anew")
}

func letterAlone(b *bench) {
	d := collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "undecodable", Message: "unexpected end of JSON"}
	require.NoError(b, b.s.DeadLetter(b.ctx(), d, []byte{0, 0xff, '{'}))
	id := b.letters(false)[0].ID
	require.ErrorIs(b, b.s.Act(b.ctx(), store.Action{ID: id, Retry: true, Who: "ann"}), store.ErrRejected)
	require.Len(b, b.letters(false), 1)
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: id, Response: success(`1`), Who: "ann"}))
	require.Empty(b, b.letters(false))
	require.Equal(b, "resolved", b.letters(true)[0].State)
}

// write writes n dead letters alike with one commit.
func (b *bench) write(n int, d collation.DeadLetter) {
	b.Helper()
	b.locked(b.c)
	plans := make([]store.Chained, n)
	for i := range plans {
		plans[i].Plan = collation.WriteDeadLetter(d)
	}
	require.NoError(b, b.c.Commit(b.ctx(), plans))
}

// reasons counts the letters by their reasons.
func (b *bench) reasons() map[string]int {
	b.Helper()
	n, f := map[string]int{}, store.DeadFilter{All: true, Limit: store.MaxPage}
	for {
		page := got(b.s.DeadLetters(b.ctx(), f))(b)
		for i := range page {
			n[page[i].Letter.Reason]++
		}
		if len(page) < f.Limit {
			return n
		}
		f.Before = page[len(page)-1].ID
	}
}

func (b *bench) dropped() int64 {
	b.Helper()
	n := got(b.s.DroppedLetters(b.ctx()))(b)
	return n
}

// letterStrays floods a space with letters of messages without a row, behind those that must
// stay (S15): of a job, of compensations that cannot begin, and one that names the row of a job
// and on which an operator has decided, because the next decision on the row counts it (E10).
func letterStrays(b *bench) {
	r := b.asked()
	for range store.MaxRuns {
		b.lease(r, "w")
	}
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w", b.live().ID())
	require.ErrorIs(b, err, store.ErrExhausted)
	b.write(1, collation.DeadLetter{Kind: journal.MessageStart, Reason: "undo"})
	b.write(1, collation.DeadLetter{Job: r.Job, Row: r.GUID, Kind: journal.MessageRequest, Reason: "acted", Stray: true})
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: b.letters(false)[0].ID, Retry: true, Who: "ann"}))
	b.write(1, collation.DeadLetter{Kind: journal.MessageRequest, Reason: "ended", Stray: true})
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: b.letters(false)[0].ID, Response: success(`1`), Who: "ann"}))
	b.write(60, collation.DeadLetter{Job: r.Job, Row: r.GUID, Reason: "old", Stray: true})
	b.expire(1)
	require.Zero(b, b.dropped(), "they are within the bound")

	b.write(store.MaxStrays, collation.DeadLetter{Reason: "new", Stray: true})
	more := got(b.s.Expire(b.ctx(), 50))(b)
	require.True(b, more)
	require.Equal(b, map[string]int{"runs": 1, "undo": 1, "acted": 1, "old": 11, "new": store.MaxStrays}, b.reasons(), "the oldest first")
	b.expire(50)
	kept := map[string]int{"runs": 1, "undo": 1, "acted": 1, "new": store.MaxStrays}
	require.Equal(b, kept, b.reasons())
	require.Equal(b, int64(61), b.dropped())
	b.expire(50)
	require.Equal(b, kept, b.reasons())
}

// letterBytes keeps of large strays as many as the bound allows (S15).
func letterBytes(b *bench) {
	large := collation.DeadLetter{Reason: "large", Raw: make([]byte, 1<<20), Stray: true}
	b.write(4, collation.DeadLetter{Reason: "small", Stray: true})
	b.write(1, collation.DeadLetter{Reason: "own", Raw: large.Raw})
	b.write(store.MaxStrayBytes>>20, large)
	b.expire(10)
	require.Equal(b, 4, b.reasons()["small"], "they have no bytes")
	b.write(1, collation.DeadLetter{Reason: "last", Message: "x", Stray: true})
	b.expire(10)
	require.Equal(b, map[string]int{"own": 1, "large": store.MaxStrayBytes>>20 - 1, "last": 1}, b.reasons())
	require.Equal(b, int64(5), b.dropped())
}
