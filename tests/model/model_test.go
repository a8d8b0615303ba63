package model

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

// TestMain says how many flows are run in each kind of world.
func TestMain(m *testing.M) {
	soak.Checks(15, 75)
	goleak.VerifyTestMain(m)
}

// Any legal flow, under any interleaving, loss and duplication of messages and
// in every mode of commits (C11), ends with semaphore 0, one close, I2 to I6, the
// outputs of the plain reading, and a journal that is proved.
func TestC11AnyFlowEndsAsItReads(t *testing.T) {
	t.Parallel()
	for _, name := range sorted(worlds) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			smallest := ""
			t.Cleanup(func() {
				if smallest != "" { // rapid keeps none of a failure that it does not meet again
					t.Log("\n" + smallest)
				}
			})
			rapid.Check(t, func(r *rapid.T) {
				p := drawPlan(r, worlds[name])
				if p.much {
					r.Skip("too much")
				}
				if os.Getenv("QUIPU_MODEL_TRACE") != "" { // for a run that ends in a crash
					fmt.Fprintf(os.Stderr, "== %s\n%s", t.Name(), p.text())
				}
				if wrong := play(t, p); len(wrong) > 0 {
					text := p.text() + strings.Join(wrong, "\n")
					if smallest == "" || len(text) <= len(smallest) {
						smallest = text
					}
					r.Fatal(wrong[0])
				}
			})
		})
	}
}
