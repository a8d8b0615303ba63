package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// A table without processes says so on standard error; JSON stays empty.
func TestNoProcesses(t *testing.T) {
	t.Parallel()
	for format, said := range map[string]string{"table": "no processes: start one with `worker`, or a program that calls Run\n", "json": ""} {
		var out, errs bytes.Buffer
		a := app{streams: cli.Streams{Out: &out, Err: &errs}, output: format}
		require.NoError(t, a.processes(nil))
		require.Empty(t, out.String())
		require.Equal(t, said, errs.String())
	}
}
