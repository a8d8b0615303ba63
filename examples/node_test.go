package examples_test

import (
	"context"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// oldestNode is the oldest major version of Node that the examples run on.
const oldestNode = 20

// faulty are npm's errors about the lock file and its packages. All other errors are about
// reaching the registry.
var faulty = regexp.MustCompile(`(?m)^npm (error|ERR!) code (EUSAGE|EINTEGRITY|EJSONPARSE|ETARGET|E404)$`)

// installPackages installs the packages of the lock file in dir, so that Node can run the
// example. If Node or npm is missing or too old, or the registry cannot be reached, the test is
// skipped with the reason.
func installPackages(t testing.TB, dir string) {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed, the worker in JavaScript does not run here: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	version, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		t.Skipf("node does not run: %v", err)
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if major, err := strconv.Atoi(number); err != nil || major < oldestNode {
		t.Skipf("Node %s is too old, the worker in JavaScript needs %d", version, oldestNode)
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
	case faulty.Match(out):
		t.Fatalf("npm ci: %v\n%s", err, out)
	default:
		t.Skipf("npm ci cannot install the packages, which needs its cache or the registry: %v\n%s", err, out)
	}
}
