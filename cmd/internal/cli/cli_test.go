package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
)

// command has a flag from the environment and ends with an error.
func command(fail error, seen *string) clitest.Run {
	return func(ctx context.Context, args []string, s cli.Streams) int {
		cmd := &cobra.Command{Use: "thing", Args: cli.Args(0, 0)}
		value := cmd.Flags().String("max-batch", "5", "`N` of them")
		cmd.Flags().Int("limit", 5, "`N` at most")
		cmd.Flags().Duration("delay", 0, "`TIME` to wait")
		cmd.Flags().Bool("all", false, "all of them")
		cli.FromEnv(cmd.Flags(), "max-batch", "limit")
		cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
			if _, err := cli.ReadEnv(cmd, s.Getenv); err != nil {
				return err
			}
			*seen = *value
			return fail
		})
		return cli.Execute(ctx, cmd, args, s)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		args []string
		want int
		said string
	}{
		"done":         {nil, nil, 0, ""},
		"failed":       {errors.New("no luck"), nil, cli.CodeFailed, "thing: no luck\n"},
		"own code":     {cli.Exitf(7, "stale"), nil, 7, "thing: stale\n"},
		"harmless":     {errors.New("a\x1b[31mb\u202e\n\u009bc\r"), nil, cli.CodeFailed, "thing: a [31mb\ufffd\n c \n"},
		"reported":     {cli.Exit(3, cli.ErrReported), nil, 3, ""},
		"usage":        {cli.Exitf(cli.CodeUsage, "odd"), nil, cli.CodeUsage, "thing: odd\n'thing --help' says how it is used.\n"},
		"no number":    {nil, []string{"--limit", "x"}, cli.CodeUsage, "thing: --limit \"x\": use a whole number\n"},
		"no time":      {nil, []string{"--delay", "tomorrow"}, cli.CodeUsage, "thing: --delay \"tomorrow\": use a time such as 500ms, 30s or 72h\n"},
		"no truth":     {nil, []string{"--all=perhaps"}, cli.CodeUsage, "thing: --all \"perhaps\": use true or false\n"},
		"unknown flag": {nil, []string{"--odd"}, cli.CodeUsage, "unknown flag: --odd"},
		"arguments":    {nil, []string{"odd"}, cli.CodeUsage, "thing: \"odd\": no arguments are taken\nusage: thing [flags]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen string
			r := clitest.Do(t, command(c.err, &seen), nil, "", c.args...)
			require.Equal(t, c.want, r.Code, r.Err)
			require.Contains(t, r.Err, c.said)
			require.Equal(t, c.said == "", r.Err == "")
		})
	}
	require.NoError(t, cli.Exit(3, nil))
	require.Equal(t, cli.CodeOK, cli.Code(nil))
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{"QUIPU_MAX_BATCH": "9"}
	var seen string
	require.Zero(t, clitest.Do(t, command(nil, &seen), env, "").Code)
	require.Equal(t, "9", seen)
	require.Zero(t, clitest.Do(t, command(nil, &seen), env, "", "--max-batch", "7").Code)
	require.Equal(t, "7", seen, "a flag that is given wins")
	require.Zero(t, clitest.Do(t, command(nil, &seen), map[string]string{"QUIPU_MAX_BATCH": ""}, "").Code)
	require.Equal(t, "5", seen, "an empty variable counts as unset")
}

// A person who presses Ctrl-C does not get an error that only says so, but every other one.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		err  error
		says string
	}{
		{fmt.Errorf("wait: %w", context.Canceled), ""},
		{errors.New("the drain took too long"), "the drain took too long"},
	} {
		var seen string
		var out, errs bytes.Buffer
		code := command(c.err, &seen)(ctx, nil,
			cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: clitest.Env(nil)})
		require.Equal(t, cli.CodeInterrupted, code)
		require.Contains(t, errs.String(), c.says)
		require.Equal(t, c.says == "", errs.Len() == 0, errs.String())
	}
}

// An error about a file names the file, not the system call.
func TestPathError(t *testing.T) {
	t.Parallel()
	_, err := os.Lstat("/no/such/file")
	require.EqualError(t, cli.PathError(err), "/no/such/file: no such file or directory")
	require.ErrorIs(t, cli.PathError(err), os.ErrNotExist)
	other := errors.New("else")
	require.Equal(t, other, cli.PathError(other))
}

// TestDevFile: whole, private, and gone when removed.
func TestDevFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := cli.ReadDevFile(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "worker dev --data")
	want := cli.DevFile{Postgres: "postgres://x", NATS: "nats://y", HTTP: "http://z", PID: 7, Space: "shop"}
	require.NoError(t, want.Write(dir))
	require.NoError(t, want.Write(dir))
	got, err := cli.ReadDevFile(dir)
	require.NoError(t, err)
	require.Equal(t, want, got)
	info, err := os.Stat(cli.DevPath(dir))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds a password")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.NoError(t, cli.RemoveDevFile(dir))
	require.NoError(t, cli.RemoveDevFile(dir))
	require.NoError(t, os.WriteFile(cli.DevPath(dir), []byte("{"), 0o600))
	_, err = cli.ReadDevFile(dir)
	require.ErrorContains(t, err, "dev.json")
}

func TestReferenceAndSection(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "thing", Short: "A thing"}
	sub := &cobra.Command{Use: "do NAME", Short: "Do it", Run: func(*cobra.Command, []string) {}}
	sub.Flags().StringP("way", "w", "fast", "the `WAY` of it, a|b")
	cli.FromEnv(sub.Flags(), "way")
	root.AddCommand(sub)
	text := clitest.Reference(root)
	require.Contains(t, text, "## `thing`\n\nA thing.\n")
	require.Contains(t, text, "### `thing do`\n\n    thing do NAME [flags]\n")
	require.Contains(t, text, "| `-w, --way WAY` | `QUIPU_WAY` | `fast` | the WAY of it, a\\|b |\n")
	section, replaced, ok := clitest.Section("a\n<!-- x -->\nold\n<!-- /x -->\nb\n", "x", "new\n")
	require.True(t, ok)
	require.Equal(t, "old\n", section)
	require.Equal(t, "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n", replaced)
	_, _, ok = clitest.Section("a", "x", "")
	require.False(t, ok)
}

// Where USER is not set, the name is the system's: an entry names who did it.
func TestGetenv(t *testing.T) {
	t.Setenv("USER", "")
	t.Setenv("LOGNAME", "")
	u, err := user.Current()
	require.NoError(t, err)
	require.Equal(t, u.Username, cli.Getenv("USER"))
	require.Empty(t, cli.Getenv("LOGNAME"))
	t.Setenv("LOGNAME", "ada")
	require.Empty(t, cli.Getenv("USER"), "the commands read LOGNAME next")
	t.Setenv("USER", "bob")
	require.Equal(t, "bob", cli.Getenv("USER"))
}
