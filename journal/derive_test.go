package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// TestGoldenDerivations compares the readers' derivations with the golden vectors of package
// collation (C8, W12).
func TestGoldenDerivations(t *testing.T) {
	t.Parallel()
	job := journal.DeriveJob("shop", "order-42", 1)
	leg1 := journal.DeriveLeg1(job.Start(), "charge", ",0,0")
	request := journal.DeriveRequest(leg1, 0)
	wait := journal.DeriveWakeUp(leg1, journal.BySignal, "")
	child := journal.DeriveChild(leg1, 1)
	signal, err := journal.ParseGUID("8cb28a09-31af-857e-b6cc-cae2dc1a01a9")
	require.NoError(t, err)
	pause := func(k journal.PauseKind) journal.PauseRef {
		return journal.PauseRef{Kind: k, Name: "nap", Position: "2.1"}
	}
	require.Equal(t, map[string]string{
		"job":              "d828a2ee-477c-86b1-be12-664b03a0135d",
		"job, generation":  "c478c7b7-1622-82ee-b015-3ec018721e94",
		"leg1":             "9b4216f2-446a-87b6-a7a5-e7a367045ce4",
		"request":          "38f661f3-cddd-8633-8b34-bf25a0342831",
		"request, element": "5fc15566-df0e-8773-b78f-3695afd7701b",
		"response":         "07d78efa-634a-8a7e-aa0e-76c883c31574",
		"response, turn":   "1f0c343c-1a35-87f0-a9ce-dde774b71f4d",
		"answer":           "7cb72a29-e256-8c69-9bed-e6455d8c11dc",
		"operator":         "34bde879-8fc4-87d2-b973-0d473cc5fd99",
		"signal, sent":     "bbb29e30-6644-85e4-bf4d-26f31891fd12",
		"wakeup, timer":    "fafcff02-4aff-8966-9cd4-a46705a4610b",
		"wakeup, signal":   "830f6ed5-eba2-8229-b32a-c1abb246329d",
		"wakeup, pass":     "8c9d8e69-cb3d-892f-b235-4cc2d05ff0d8",
		"cycle":            "ed885b2c-7077-8918-8dc4-79f328a71c01",
		"join":             "df5d2ced-cfa5-8ce1-a421-89d6480ecdee",
		"child":            "66966ccc-3687-8711-bee8-33471a569b9c",
		"child, turn":      "16791ead-5cdc-8970-add7-f4e9a280f79d",
		"outcome":          "00a5ce87-c673-8912-a478-f1d77c70364b",
		"interrupt":        "6834da43-a328-8947-8322-7dde79c80424",
		"pause, sleep":     "99fbe751-548c-8dff-bf95-d7b7f4b1030b",
		"pause, signal":    "ade1f547-f988-873b-a767-1545bda26939",
		"pause, child":     "b94b2c53-ab7f-8e22-8ba4-a9c4d2e16097",
		"timeout":          "82fab2a0-2cfc-8f25-8b13-5bd0076408e6",
		"undo":             "f2ff647d-6f3f-88f1-8518-ef4ec9a2943e",
	}, map[string]string{
		"job":              job.String(),
		"job, generation":  journal.DeriveJob("shop", "order-42", 2).String(),
		"leg1":             leg1.String(),
		"request":          request.String(),
		"request, element": journal.DeriveRequest(leg1, 3).String(),
		"response":         journal.DeriveResponse(request, 1).String(),
		"response, turn":   journal.DeriveResponse(request, 2).String(),
		"answer":           journal.DeriveResponse(leg1, 0).String(),
		"operator":         journal.DeriveOperator(request, "retry", 1).String(),
		"signal, sent":     journal.DeriveSent(leg1).String(),
		"wakeup, timer":    journal.DeriveWakeUp(leg1, journal.ByTimer, "").String(),
		"wakeup, signal":   wait.String(),
		"wakeup, pass":     journal.DeriveSignalled(wait, signal).String(),
		"cycle":            journal.DeriveCycle(leg1).String(),
		"join":             journal.DeriveJoin(job, "meet", ",0,0").String(),
		"child":            child.String(),
		"child, turn":      journal.DeriveChild(leg1, 2).String(),
		"outcome":          journal.DeriveOutcome(child.Start(), 1).String(),
		"interrupt":        journal.DeriveInterrupt(leg1, job).String(),
		"pause, sleep":     journal.DerivePause(request, pause(journal.PauseSleep)).String(),
		"pause, signal":    journal.DerivePause(request, pause(journal.PauseSignal)).String(),
		"pause, child":     journal.DerivePause(request, pause(journal.PauseChild)).String(),
		"timeout":          journal.DeriveTimeout(wait).String(),
		"undo":             journal.DeriveUndo(request).String(),
	})
}
