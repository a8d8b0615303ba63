package quiputest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/workers"
)

// renewal is a durable function: three calls, one after the other.
func renewal(ctx context.Context, calls ...func(context.Context) error) (string, error) {
	for _, call := range calls {
		if err := call(ctx); err != nil {
			return "", err
		}
	}
	return "renewed", nil
}

func do(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := effects.Do(ctx, name, func(context.Context) (int, error) { return 1, nil }, effects.Idempotent)
		return err
	}
}

func sleep(name string) func(context.Context) error {
	return func(ctx context.Context) error { return workers.Sleep(ctx, name, time.Hour) }
}

// changed adds a call, for jobs that had not got there before.
func changed(ctx context.Context) error {
	version, err := workers.Version(ctx, "remind", 1)
	if err != nil || version == 0 {
		return err
	}
	return do("remind")(ctx)
}

// function registers a version of the function.
func function(calls ...func(context.Context) error) func(*workers.Registry) {
	return func(reg *workers.Registry) {
		workers.HandleDurable(reg, "renew", func(ctx context.Context, _ any) (string, error) { return renewal(ctx, calls...) })
	}
}

var old = function(do("invoice"), sleep("a while"), do("charge"))

// recorded writes the journals of two jobs of the old code, one of them unfinished.
func recorded(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	Run(t, func(_ testing.TB, w *World) {
		w.Serve(old)
		w.Call("renew", "done", nil).Output(nil)
		w.Call("renew", "asleep", nil)
		w.Settle()
		w.Export(filepath.Join(dir, "renewals.jsonl"))
	})
	return dir
}

// replayed is ReplayJournal on a recorder.
func replayed(t *testing.T, source string, register func(*workers.Registry), options ...ReplayOption) *recorder {
	t.Helper()
	return witness(t, func(h host) { ReplayJournal(h, source, register, options...) })
}

// E15: another path than the recorded one is caught at the first difference. Calls added at the
// end, or behind workers.Version, are allowed.
func TestE15ReplayCatchesChangedFunctions(t *testing.T) {
	t.Parallel()
	dir := recorded(t)
	for name, c := range map[string]struct {
		register func(*workers.Registry)
		says     []string // nothing: it passes
	}{
		"the same":            {old, nil},
		"a call at the end":   {function(do("invoice"), sleep("a while"), do("charge"), do("thank")), nil},
		"a version":           {function(do("invoice"), changed, sleep("a while"), do("charge")), nil},
		"another order":       {function(sleep("a while"), do("invoice"), do("charge")), []string{`job "done"`, `job "asleep"`, "a while", "invoice"}},
		"another name":        {function(do("bill"), sleep("a while"), do("charge")), []string{`job "done"`, `job "asleep"`, "bill", "invoice"}},
		"a call in between":   {function(do("invoice"), do("remind"), sleep("a while"), do("charge")), []string{`job "done"`, `job "asleep"`, "remind"}},
		"a call that is gone": {function(do("invoice"), sleep("a while")), []string{`job "done"`, "charge"}},
		"a panic":             {function(do("invoice"), func(context.Context) error { panic("oh dear") }), []string{`job "done"`, "oh dear", "replayfails_test.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replayed(t, dir, c.register)
			require.Equal(t, c.says != nil, r.failed, r.text())
			require.Contains(t, r.text(), "2 requests of 2 jobs in 1 files were replayed")
			for _, text := range c.says {
				require.Contains(t, r.text(), text)
			}
		})
	}
}

// SameAnswers compares the answers of ended requests.
func TestReplayComparesAnswers(t *testing.T) {
	t.Parallel()
	dir := recorded(t)
	refused := func(ctx context.Context) error { return workers.Fail(409, "not any more") }
	for name, c := range map[string]struct {
		register func(*workers.Registry)
		says     string
	}{
		"longer":  {function(do("invoice"), sleep("a while"), do("charge"), do("thank")), "it was answered with code 200, and is not now: it is unrecorded"},
		"refused": {function(do("invoice"), sleep("a while"), do("charge"), refused), "it is answered otherwise: code 409 (business): not any more\n  recorded: code 200 with output \"renewed\""},
	} {
		require.False(t, replayed(t, dir, c.register).failed, name)
		r := replayed(t, dir, c.register, SameAnswers())
		require.True(t, r.failed, name)
		require.Contains(t, r.text(), c.says)
	}
	require.False(t, replayed(t, dir, old, SameAnswers()).failed)
}

// A replay of nothing, or of a file that is no journal, proves nothing.
func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	dir := recorded(t)
	file := filepath.Join(dir, "renewals.jsonl")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	place := func(content []byte) string {
		name := filepath.Join(t.TempDir(), "x.jsonl")
		require.NoError(t, os.WriteFile(name, content, 0o600))
		return name
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	ofAFlow := filepath.Join(t.TempDir(), "x.jsonl")
	Run(t, func(_ testing.TB, w *World) {
		w.DeployFiles("testdata/invoice.yaml")
		w.Start("invoice", "i-1", nil)
		w.Settle()
		w.Export(ofAFlow)
	})
	for name, c := range map[string]struct {
		source   string
		register func(*workers.Registry)
		options  []ReplayOption
		says     string
	}{
		"no file":       {filepath.Join(dir, "none.jsonl"), old, nil, "none.jsonl"},
		"no files":      {t.TempDir(), old, nil, "nothing was replayed"},
		"other topics":  {file, workers.RegisterBuiltins, nil, "no job asked for one of the topics [echo fail http sleep]"},
		"no journal":    {place([]byte("hello\n")), old, nil, "line 1"},
		"a line is out": {place(bytes.Join(append(lines[:2:2], lines[3:]...), nil)), old, nil, "its journal is not as it was written: V1"},
		"cut off":       {place(good[:len(good)-4]), old, nil, "line "},
		"a flow":        {ofAFlow, workers.RegisterBuiltins, nil, `job "i-1": flow invoice version 1 with digest`},
		"its file":      {ofAFlow, workers.RegisterBuiltins, nil, "name its file with quiputest.Flows"},
		"no such flow":  {file, old, []ReplayOption{Flows("*.none")}, "flows *.none: no such file"},
		"a bad topic":   {file, func(reg *workers.Registry) { workers.HandleRaw(reg, "*", nil) }, nil, "nothing was replayed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replayed(t, c.source, c.register, c.options...)
			require.True(t, r.failed)
			require.Contains(t, r.text(), c.says)
		})
	}
}

// E6: an output of which a journal has only the digest cannot be replayed, and is not skipped
// silently.
func TestE6ReplayNeedsWholeOutputs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.jsonl")
	long := func(reg *workers.Registry) {
		workers.Handle(reg, "long", func(context.Context, any) (string, error) {
			return strings.Repeat("x", wire.MaxInline+1), nil
		})
		workers.HandleDurable(reg, "parent", func(ctx context.Context, _ any) (int, error) {
			out, err := workers.Child[string](ctx, "long", "long", nil)
			return len(out), err
		})
	}
	flow := filepath.Join(t.TempDir(), "long.yaml")
	text := "flow: long\nversion: '1'\noutput: '${ say.output }'\nactivities:\n  start: {type: trigger}\n  say: {type: worker, topic: long}\n" +
		"  again: {type: worker, topic: long, input: '${ say.output }'}\ntransitions: {start: [say], say: [again]}\n"
	require.NoError(t, os.WriteFile(flow, []byte(text), 0o600))
	Run(t, func(t testing.TB, w *World) {
		w.DeployFiles(flow)
		w.Serve(long)
		var n int
		w.Call("parent", "p-1", nil).Output(&n)
		require.Equal(t, wire.MaxInline+1, n)
		w.Export(file)
	})
	r := replayed(t, file, long, Flows(flow))
	require.True(t, r.failed)
	require.Contains(t, r.text(), "the output of say is stored beside the journal, and no export has it")
}
