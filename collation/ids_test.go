package collation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// TestGoldenIdentifiers pins every id of C8. After a change here a system no longer recognises
// its own messages.
func TestGoldenIdentifiers(t *testing.T) {
	t.Parallel()
	job := collation.NewJobID("shop", "order-42", 1)
	leg1 := collation.Leg1GUID(job.Start(), "charge", ",0,0")
	request := collation.RequestGUID(leg1, 0)
	signal := collation.SignalGUID("shop", "order.reviewed", "o-1", "key-1")
	wait := collation.WakeUpGUID(leg1, journal.BySignal, "")
	child := collation.ChildID(leg1, 1)
	got := map[string]string{
		"job":              job.String(),
		"job, generation":  collation.NewJobID("shop", "order-42", 2).String(),
		"leg1":             leg1.String(),
		"request":          request.String(),
		"request, element": collation.RequestGUID(leg1, 3).String(),
		"response":         collation.ResponseGUID(request, 1).String(),
		"response, turn":   collation.ResponseGUID(request, 2).String(),
		"answer":           collation.ResponseGUID(leg1, 0).String(),
		"operator":         collation.OperatorGUID(request, "retry", 1).String(),
		"mailbox":          collation.Mailbox("shop", "order.reviewed", "o-1").String(),
		"signal":           signal.String(),
		"signal, sent":     collation.SentGUID(leg1).String(),
		"wakeup, timer":    collation.WakeUpGUID(leg1, journal.ByTimer, "").String(),
		"wakeup, signal":   wait.String(),
		"wakeup, pass":     collation.SignalledGUID(wait, signal).String(),
		"cycle":            collation.CycleGUID(leg1).String(),
		"join":             collation.JoinGUID(job, "meet", ",0,0").String(),
		"child":            child.String(),
		"child, turn":      collation.ChildID(leg1, 2).String(),
		"outcome":          collation.OutcomeGUID(child.Start(), 1).String(),
		"interrupt":        collation.InterruptGUID(leg1, job).String(),
		"interrupt, asked": collation.AskedInterruptGUID("caller", job).String(),
		"pause, sleep":     collation.PauseGUID(request, pause(journal.PauseSleep)).String(),
		"pause, signal":    collation.PauseGUID(request, pause(journal.PauseSignal)).String(),
		"pause, child":     collation.PauseGUID(request, pause(journal.PauseChild)).String(),
		"timeout":          collation.TimeoutGUID(wait).String(),
		"undo":             collation.UndoID(request).String(),
	}
	require.Equal(t, goldenIDs, got)
	seen := map[string]bool{}
	for name, id := range got {
		require.False(t, seen[id], "%s is not distinct", name)
		seen[id] = true
		g, err := journal.ParseGUID(id)
		require.NoError(t, err)
		require.Equal(t, byte(0x80), g[6]&0xf0, "version 8")
		require.Equal(t, byte(0x80), g[8]&0xc0, "RFC 9562 variant")
	}
}

func pause(k journal.PauseKind) journal.PauseRef {
	return journal.PauseRef{Kind: k, Name: "nap", Position: "2.1"}
}

// TestReadersDeriveTheSame: the codec and replay derive the same ids by their own code (C8,
// W12).
func TestReadersDeriveTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := journal.GUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "guid"))
		job := journal.JobID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "job"))
		name, n := rapid.String().Draw(t, "name"), rapid.IntRange(0, 1000).Draw(t, "n")
		segments := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 10}), 1, 12).Draw(t, "address")
		dad := collation.DAD(",0").Base()
		for _, s := range segments {
			dad = dad.Child().WithIndex(s)
		}
		ref := journal.PauseRef{Kind: rapid.SampledFrom([]journal.PauseKind{
			journal.PauseSleep, journal.PauseSignal, journal.PauseChild,
		}).Draw(t, "kind"), Name: name, Position: "1.2"}
		for what, pair := range map[string][2]any{
			"job":       {collation.NewJobID(name, "k", int64(n)), journal.DeriveJob(name, "k", int64(n))},
			"leg1":      {collation.Leg1GUID(g, name, dad), journal.DeriveLeg1(g, name, string(dad))},
			"join":      {collation.JoinGUID(job, name, dad), journal.DeriveJoin(job, name, string(dad))},
			"request":   {collation.RequestGUID(g, n), journal.DeriveRequest(g, n)},
			"response":  {collation.ResponseGUID(g, n), journal.DeriveResponse(g, n)},
			"operator":  {collation.OperatorGUID(g, name, n), journal.DeriveOperator(g, name, n)},
			"sent":      {collation.SentGUID(g), journal.DeriveSent(g)},
			"wakeup":    {collation.WakeUpGUID(g, journal.BySignal, name), journal.DeriveWakeUp(g, journal.BySignal, name)},
			"signalled": {collation.SignalledGUID(g, journal.GUID(job)), journal.DeriveSignalled(g, journal.GUID(job))},
			"timeout":   {collation.TimeoutGUID(g), journal.DeriveTimeout(g)},
			"cycle":     {collation.CycleGUID(g), journal.DeriveCycle(g)},
			"child":     {collation.ChildID(g, n), journal.DeriveChild(g, n)},
			"pause":     {collation.PauseGUID(g, ref), journal.DerivePause(g, ref)},
			"undo":      {collation.UndoID(g), journal.DeriveUndo(g)},
			"outcome":   {collation.OutcomeGUID(g, n), journal.DeriveOutcome(g, n)},
			"interrupt": {collation.InterruptGUID(g, job), journal.DeriveInterrupt(g, job)},
		} {
			require.Equal(t, pair[0], pair[1], what)
		}
		// A child's Leg1 is implied whole, with its address.
		body := journal.Encode(&journal.Entry{Kind: journal.KindSignal, GUID: g, DAD: string(dad), Dispatched: []journal.Dispatched{{
			GUID: collation.Leg1GUID(g, "w", dad.Child()), Kind: journal.MessageLeg1, Activity: "w", DAD: string(dad.Child()),
		}}})
		require.True(t, strings.HasSuffix(string(body), `"s":[{"a":"w","as":"leg1"}],"v":3}`), "%s", body)
	})
}

// TestFieldsAreLengthPrefixed: text that moves from one field to the next gives another id
// (C8).
func TestFieldsAreLengthPrefixed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(2, 20, -1).Draw(t, "text")
		cut := rapid.IntRange(1, len(text)-1).Draw(t, "cut")
		other := rapid.IntRange(1, len(text)-1).Draw(t, "other")
		a := collation.NewJobID(text[:cut], text[cut:], 1)
		b := collation.NewJobID(text[:other], text[other:], 1)
		require.Equal(t, cut == other, a == b)
		la := collation.Leg1GUID(journal.GUID{}, text[:cut], collation.DAD(text[cut:]))
		lb := collation.Leg1GUID(journal.GUID{}, text[:other], collation.DAD(text[other:]))
		require.Equal(t, cut == other, la == lb)
	})
}

// TestGenerationsShareNoIDs: a key that is used again shares no ids with its predecessor (C8).
func TestGenerationsShareNoIDs(t *testing.T) {
	t.Parallel()
	seen := map[journal.GUID]bool{}
	for generation := range int64(50) {
		job := collation.NewJobID("shop", "k", generation)
		leg1 := collation.Leg1GUID(job.Start(), "a", ",0,0")
		for _, g := range []journal.GUID{job.Start(), leg1, collation.RequestGUID(leg1, 0), collation.ResponseGUID(leg1, 0)} {
			require.False(t, seen[g])
			seen[g] = true
		}
	}
}
