package collation_test

import (
	"fmt"
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
	seen := map[string]bool{}
	for name, c := range map[string]struct {
		id     fmt.Stringer
		golden string // derived from the rules by a second program
	}{
		"job":              {job, "d828a2ee-477c-86b1-be12-664b03a0135d"},
		"job, generation":  {collation.NewJobID("shop", "order-42", 2), "c478c7b7-1622-82ee-b015-3ec018721e94"},
		"leg1":             {leg1, "9b4216f2-446a-87b6-a7a5-e7a367045ce4"},
		"request":          {request, "38f661f3-cddd-8633-8b34-bf25a0342831"},
		"request, element": {collation.RequestGUID(leg1, 3), "5fc15566-df0e-8773-b78f-3695afd7701b"},
		"response":         {collation.ResponseGUID(request, 1), "07d78efa-634a-8a7e-aa0e-76c883c31574"},
		"response, turn":   {collation.ResponseGUID(request, 2), "1f0c343c-1a35-87f0-a9ce-dde774b71f4d"},
		"answer":           {collation.ResponseGUID(leg1, 0), "7cb72a29-e256-8c69-9bed-e6455d8c11dc"},
		"operator":         {collation.OperatorGUID(request, "retry", 1), "34bde879-8fc4-87d2-b973-0d473cc5fd99"},
		"mailbox":          {collation.Mailbox("shop", "order.reviewed", "o-1"), "83ac8892-feb3-8871-9d7f-2da3f7e05878"},
		"signal":           {signal, "8cb28a09-31af-857e-b6cc-cae2dc1a01a9"},
		"signal, sent":     {collation.SentGUID(leg1), "bbb29e30-6644-85e4-bf4d-26f31891fd12"},
		"wakeup, timer":    {collation.WakeUpGUID(leg1, journal.ByTimer, ""), "fafcff02-4aff-8966-9cd4-a46705a4610b"},
		"wakeup, signal":   {wait, "830f6ed5-eba2-8229-b32a-c1abb246329d"},
		"wakeup, pass":     {collation.SignalledGUID(wait, signal), "8c9d8e69-cb3d-892f-b235-4cc2d05ff0d8"},
		"cycle":            {collation.CycleGUID(leg1), "ed885b2c-7077-8918-8dc4-79f328a71c01"},
		"join":             {collation.JoinGUID(job, "meet", ",0,0"), "df5d2ced-cfa5-8ce1-a421-89d6480ecdee"},
		"child":            {child, "66966ccc-3687-8711-bee8-33471a569b9c"},
		"child, turn":      {collation.ChildID(leg1, 2), "16791ead-5cdc-8970-add7-f4e9a280f79d"},
		"outcome":          {collation.OutcomeGUID(child.Start(), 1), "00a5ce87-c673-8912-a478-f1d77c70364b"},
		"interrupt":        {collation.InterruptGUID(leg1, job), "6834da43-a328-8947-8322-7dde79c80424"},
		"interrupt, asked": {collation.AskedInterruptGUID("caller", job), "13a76bdb-e962-81ee-999d-ac9e8bd0715e"},
		"pause, sleep":     {collation.PauseGUID(request, pause(journal.PauseSleep)), "99fbe751-548c-8dff-bf95-d7b7f4b1030b"},
		"pause, signal":    {collation.PauseGUID(request, pause(journal.PauseSignal)), "ade1f547-f988-873b-a767-1545bda26939"},
		"pause, child":     {collation.PauseGUID(request, pause(journal.PauseChild)), "b94b2c53-ab7f-8e22-8ba4-a9c4d2e16097"},
		"timeout":          {collation.TimeoutGUID(wait), "82fab2a0-2cfc-8f25-8b13-5bd0076408e6"},
		"undo":             {collation.UndoID(request), "f2ff647d-6f3f-88f1-8518-ef4ec9a2943e"},
	} {
		id := c.id.String()
		require.Equal(t, c.golden, id, name)
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
		body := journal.Encode(&journal.Entry{
			Kind: journal.KindSignal, GUID: g, DAD: string(dad),
			Dispatched: []journal.Dispatched{{
				GUID: collation.Leg1GUID(g, "w", dad.Child()), Kind: journal.MessageLeg1, Activity: "w",
				DAD: string(dad.Child()),
			}},
		})
		require.True(t, strings.HasSuffix(string(body), `"s":[{"a":"w","as":"leg1"}],"v":3}`), "%s", body)
	})
}
