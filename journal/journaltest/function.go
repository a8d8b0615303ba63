package journaltest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// dreamer is a flow of one durable function.
const dreamer = `
flow: dreamer
version: "1"
output: "${ dream.output }"
activities:
  start: {type: trigger}
  dream: {type: worker, topic: t.dream, input: {n: "${ start.output.n }"}}
transitions:
  start: [dream]
`

// dreams are what the function waits for: all of it at once.
func dreams(b *bench) []journal.Pause {
	span := b.span().Microseconds()
	return []journal.Pause{
		{PauseRef: pauseRef(journal.PauseSleep, "nap", "1"), For: span},
		{PauseRef: pauseRef(journal.PauseSleep, "night", "2"), For: 1e15},
		{PauseRef: pauseRef(journal.PauseSignal, "early", "3"), Topic: "bell", Key: "early"},
		{PauseRef: pauseRef(journal.PauseSignal, "go", "4"), Topic: "bell", Key: "go", For: 1e15},
		{PauseRef: pauseRef(journal.PauseSignal, "never", "5"), Topic: "bell", Key: "never", For: span},
		{PauseRef: pauseRef(journal.PauseChild, "kid", "6"), Flow: "one", Input: []byte(`{"n":1}`)},
	}
}

// dream is a run of the function: it waits for what has not come, but for the
// night, which it does not wait for once it has been told to go. In the end it
// returns what came, in its order.
func (b *bench) dream(r *collation.Row, waits []journal.Pause) *journal.Response {
	came := map[string]bool{}
	var told []string
	for _, p := range b.came(r.Job, r.GUID) {
		came[p.Name] = true
		told = append(told, fmt.Sprintf("%s %s %d %s%s", p.Position, p.Name, p.Response.Code, p.Response.By, p.Response.Output))
	}
	left := slices.DeleteFunc(slices.Clone(waits), func(p journal.Pause) bool {
		return came[p.Name] || p.Name == "night" && came["go"]
	})
	if len(left) > 0 {
		return &journal.Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: left}
	}
	slices.Sort(told)
	out, err := json.Marshal(told)
	require.NoError(b, err)
	return success(string(out))
}

// wholeFunction runs a durable function: a signal that is there before it waits,
// one that comes later, one that does not come in time, a sleep that it sleeps and
// one that it gives up, and a child (E12, E13).
func wholeFunction(b *bench) {
	b.mode.Resend = 0
	c := b.committer()
	b.deploy(one)
	b.functions = map[string][]journal.Pause{"t.dream": dreams(b)}
	require.Equal(b, store.SignalKept, b.tell(b.signal("bell", "early", "first")).State)
	id := b.start(b.deploy(dreamer), "k")
	answers := map[string][]string{"work": {`"played"`}}
	b.settle(c, answers)
	request := b.row(id, journal.MessageRequest, "dream")
	require.Equal(b, collation.Never, request.NextAt)
	require.Empty(b, request.Held)
	stand := func() (names []string) {
		for _, p := range b.paused(id, request.GUID) {
			if p.Seq == 0 {
				names = append(names, p.Name)
			}
		}
		return names
	}
	require.Subset(b, []string{"nap", "night", "go", "never"}, stand())
	require.Subset(b, stand(), []string{"night", "go"})
	b.audit(id)

	require.Equal(b, store.SignalConsumed, b.tell(b.signal("bell", "go", "second")).State)
	b.settle(c, answers)
	require.NotContains(b, stand(), "night")
	b.eventually(func() bool {
		b.settle(c, answers)
		return b.view(id).State.Closed()
	})
	v := b.view(id)
	require.Equal(b, journal.JobCompleted, v.State, "%+v", v.Error)
	require.JSONEq(b, `["1 nap 200 timer","3 early 200 signal\"first\"","4 go 200 signal\"second\"","5 never 200 timer","6 kid 200 {\"got\":\"played\"}"]`,
		string(v.Output))
	require.Empty(b, v.Rows, "neither the night nor the bound of what came is left")
	require.Empty(b, v.Waits)
	require.Len(b, b.came(id, request.GUID), 5)
	for id, err := range b.s.AuditJobs(b.ctx(), nil) {
		require.NoError(b, err)
		b.audit(id)
	}
}

// pauseMeets tells functions what they are just about to wait for.
func pauseMeets(b *bench) {
	b.mode.Resend = 0
	f := b.deploy(dreamer)
	setup := b.committer()
	for i := range 20 {
		key := fmt.Sprint(i)
		id := b.start(f, key)
		b.settle(setup, nil)
		request := b.row(id, journal.MessageRequest, "dream")
		suspended := &journal.Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: []journal.Pause{
			{PauseRef: pauseRef(journal.PauseSignal, "go", "1"), Topic: "bell", Key: key, For: 1e15},
			{PauseRef: pauseRef(journal.PauseSignal, "other", "2"), Topic: "bell", Key: key + " other"},
		}}
		errs := make([]error, 2)
		signal := b.signal("bell", key, "x")
		together(2, func(side int) {
			if side == 0 {
				_, errs[0] = b.handle(setup, response(&request, suspended))
			} else {
				_, errs[1] = b.s.Signal(b.ctx(), signal, b.mode)
			}
		})
		require.NoError(b, errs[0])
		require.NoError(b, errs[1])
		b.settle(setup, nil)
		after := b.row(id, journal.MessageRequest, "dream")
		require.NotEqual(b, collation.Never, after.NextAt, "it goes out again")
		require.Equal(b, []string{"go", "other"}, names(b.paused(id, request.GUID)))
		require.Len(b, b.came(id, request.GUID), 1)
		require.Len(b, b.view(id).Waits, 1)
		b.audit(id)
	}
}
