package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/dev/gobuild"
	"github.com/quipu-journal/quipu/tests/rig"
)

// verifier is the journal-verify binary under test.
var verifier string

// parallel is how many tests run at the same time: they mostly wait, for a lease to
// run out or for a process to start.
const parallel = 6

// TestMain builds journal-verify once. The test binary is also the worker
// process of the kill tests: with childEnv set it works until it is stopped.
func TestMain(m *testing.M) {
	rig.Child(childEnv, child)
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(parallel, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "quipu-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	verifier = filepath.Join(dir, "journal-verify")
	if err := gobuild.Build("", verifier, "../../cmd/journal-verify"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := devtest.Run(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
