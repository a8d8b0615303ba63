package faults

import (
	"os/exec"

	"github.com/stretchr/testify/require"
)

// watch looks at the database while the cell plays, until it is stopped.
func (c *cell) watch() (stop func()) { return func() {} }

// check holds the cell to the invariants.
func (c *cell) check() {
	out, err := exec.Command(programs.verifier, "--postgres", c.dsn, "--space", c.space, "--json").CombinedOutput()
	require.NoError(c.t, err, "journal-verify:\n%s", out)
}
