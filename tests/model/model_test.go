package model

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

// flows is how many flows are run in each kind of world, unless QUIPU_MODEL says
// otherwise.
var flows = soak.Times(30, 75)

func TestMain(m *testing.M) {
	flag.Parse()
	n := fmt.Sprint(flows)
	if v := os.Getenv("QUIPU_MODEL"); v != "" {
		n = v
	}
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if !set {
		if err := flag.Set("rapid.checks", n); err != nil {
			panic(err)
		}
	}
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
