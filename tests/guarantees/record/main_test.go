package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/tests/guarantees"
)

func TestTablesAreRecorded(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(guarantees.Directory, dir)
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return strings.Join(strings.Fields(string(raw)), "")
	}
	require.NoError(t, record([]string{"-commit", "abc", "-seconds", "60", "fuzz"}, strings.NewReader(
		"package target executions new corpus result\nflow  FuzzParse  120  3  7  passed\nwire  FuzzHint  1  0  2  FAILED\n"), io.Discard))
	require.Contains(t, read("fuzz.json"), `"commit":"abc","seconds":60,"targets":[{"package":"flow","target":"FuzzParse","executions":120,"new":3,"corpus":7,`)
	require.Contains(t, read("fuzz.json"), `"failed":true`)
	for _, table := range []string{"", "heading\n", "heading\nnonsense\n"} {
		require.Error(t, record([]string{"fuzz"}, strings.NewReader(table), io.Discard))
	}
	require.Error(t, record([]string{"colour"}, strings.NewReader(""), io.Discard))
}
