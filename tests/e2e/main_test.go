package e2e

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/world"
)

// parallel is how many tests run at the same time: they mostly wait, for a lease to
// run out or for a process to start.
const parallel = 6

// TestMain: the test binary is also the worker process of the kill tests: with childEnv set it
// works until it is stopped.
func TestMain(m *testing.M) {
	world.Child(childEnv, child)
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(parallel, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	devtest.Main(m)
}
