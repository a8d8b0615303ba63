package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
)

// TestWorkedLedgers shows the ledgers of messages and of their activities at every entry, as 1.12 works
// them out: one mark of each message is one entry. The handlers of a flow answer with success, but that
// refuse fails the first attempts of so many requests; the signals of a hook have the codes.
func TestWorkedLedgers(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/worked.txt", func(t *testing.T, d *datadriven.TestData) string {
		f, err := flow.Parse("f.yaml", []byte(d.Input))
		require.NoError(t, err)
		refuse := map[int]bool{}
		var codes []int
		for _, arg := range d.CmdArgs {
			for _, text := range arg.Vals {
				var n int
				_, err := fmt.Sscan(text, &n)
				require.NoError(t, err)
				if arg.Key == "refuse" {
					refuse[n] = true
				} else {
					codes = append(codes, n)
				}
			}
		}
		asked := 0
		all := recorded(t, replaytest.Honest(replaytest.Options{
			Flow: f, Mode: collation.Mode{Stepwise: true}, Choose: func(int) int { return 0 },
			Respond: func(string, int) *journal.Response {
				if asked++; refuse[asked] {
					return &journal.Response{
						Kind: journal.ResponseFailedAttempt, Code: 500, Error: &journal.Failure{Class: "error", Message: "no"},
					}
				}
				return nil
			},
			Signal: func(_ string, number int) int {
				if number > len(codes) {
					return 0
				}
				return codes[number-1]
			},
		}))
		return worked(t, all)
	})
}

// worked writes the digits after each entry: those of each activity that moved, and those of its
// message, with the message's ordinal and what they say.
func worked(t *testing.T, all []*journal.Entry) string {
	t.Helper()
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%d %s", e.Seq, e.Kind)
		for _, m := range e.Moves() {
			fmt.Fprintf(&b, ", %s %s %s", m.Activity, m.DAD, m.After)
		}
		b.WriteString("\n")
		for _, m := range messagesAt(t, all, e.Seq) {
			if m.GUID == e.GUID && m.Ledger != nil {
				fmt.Fprintf(&b, "    %s %s, number %d: %s, %s\n", m.Kind, m.Ledger, m.Ordinal, m.Verdict, m.Says)
			}
		}
	}
	return b.String()
}
