package gobuild

import (
	"fmt"
	"os/exec"
	"strings"
)

// Build runs go build in a directory, with more arguments: packages, flags before
// them. to is the program, or the directory of several. The error has what go said.
func Build(dir, to string, args ...string) error {
	build := exec.Command("go", append(append([]string{"build", "-o", to}, race...), args...)...) //nolint:gosec // of a test
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
