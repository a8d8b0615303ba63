package expr_test

import (
	"sync"
	"testing"

	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// A fault is found in one expression while another is compiled: within cel-go this was a data race,
// in a process that had found no fault before.
func TestFaultsBesideOthers(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		for text, faults := range map[string]int{`unknown(1)`: 1, `[1, 2].all(x, x > 0)`: 0} {
			all.Go(func() {
				if _, problems := expr.NewCompiler().Compile(text, data); len(problems) != faults {
					t.Errorf("%s: %v", text, problems)
				}
			})
		}
	}
	all.Wait()
}
