package effect

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/effectstest"
)

func newStore() *effectstest.Store {
	s := effectstest.New()
	s.Put(theJob, theRequest, nil)
	return s
}

func TestE2TheSameKeyTwiceInOneRun(t *testing.T) {
	t.Parallel()
	one := func(context.Context) (int, error) { return 1, nil }
	for name, c := range map[string]struct {
		first, second []effects.Option
		names         [2]string
		duplicate     bool
	}{
		"same name":            {nil, nil, [2]string{"a", "a"}, true},
		"other name":           {nil, nil, [2]string{"a", "b"}, false},
		"other key":            {[]effects.Option{effects.WithKey("1")}, []effects.Option{effects.WithKey("2")}, [2]string{"a", "a"}, false},
		"same key":             {[]effects.Option{effects.WithKey("1")}, []effects.Option{effects.WithKey("1")}, [2]string{"a", "a"}, true},
		"same key, other name": {[]effects.Option{effects.WithKey("1")}, []effects.Option{effects.WithKey("1")}, [2]string{"a", "b"}, true},
		"same key, other args": {
			[]effects.Option{effects.WithKey("1"), effects.Args(1)},
			[]effects.Option{effects.WithKey("1"), effects.Args(2)},
			[2]string{"a", "a"},
			true,
		},
		"other args":    {[]effects.Option{effects.Args(1)}, []effects.Option{effects.Args(2)}, [2]string{"a", "a"}, false},
		"same args":     {[]effects.Option{effects.Args(1)}, []effects.Option{effects.Args(1.0)}, [2]string{"a", "a"}, true},
		"declared once": {nil, []effects.Option{effects.Once()}, [2]string{"a", "a"}, false},
		"once, but other args too": {
			[]effects.Option{effects.WithKey("1"), effects.Args(1)},
			[]effects.Option{effects.WithKey("1"), effects.Args(2), effects.Once()},
			[2]string{"a", "a"},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, s := b.run()
			_, err := effects.Do(ctx, c.names[0], one, c.first...)
			require.NoError(t, err)
			_, err = effects.Do(ctx, c.names[1], one, c.second...)
			if !c.duplicate {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(*DuplicateError))
			require.ErrorAs(t, s.Verdict(), new(*DuplicateError), "also when the handler hides it")
		})
	}
}

func TestE2OnceWaitsForTheCallUnderWay(t *testing.T) {
	b := newBench(t)
	ctx, _ := b.run()
	inside, release := make(chan struct{}), make(chan struct{})
	type answer struct {
		v   int
		err error
	}
	answers := make(chan answer, 2)
	slow := func(context.Context) (int, error) {
		close(inside)
		<-release
		return 6, nil
	}
	ask := func() {
		v, err := effects.Do(ctx, "charge", slow, effects.Once())
		answers <- answer{v, err}
	}
	go ask()
	<-inside
	go ask()
	close(release)
	for range 2 {
		require.Equal(t, answer{6, nil}, <-answers)
	}
}

func TestE2AReplayWithAnotherNameOrArguments(t *testing.T) {
	t.Parallel()
	one := func(context.Context) (int, error) { return 1, nil }
	for name, c := range map[string]struct {
		name    string
		options []effects.Option
		shows   string
	}{
		"other name":   {"refund", []effects.Option{effects.WithKey("k"), effects.Args(1)}, `"refund[k]{`},
		"other args":   {"charge", []effects.Option{effects.WithKey("k"), effects.Args(2)}, `"charge[k]{`},
		"args left":    {"charge", []effects.Option{effects.WithKey("k")}, `"charge[k]"`},
		"same as then": {"charge", []effects.Option{effects.WithKey("k"), effects.Args(1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, _ := b.run()
			_, err := effects.Do(ctx, "charge", one, effects.WithKey("k"), effects.Args(1))
			require.NoError(t, err)
			recorded := b.store.Rows(theRequest)[0].Name
			ctx, s := b.again()
			_, err = effects.Do(ctx, c.name, one, c.options...)
			if c.shows == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(*effects.NondeterminismError))
			require.ErrorContains(t, err, recorded)
			require.ErrorContains(t, err, c.shows)
			require.ErrorAs(t, s.Verdict(), new(*effects.NondeterminismError))
			require.Len(t, b.store.Rows(theRequest), 1, "nothing was done")
		})
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	long := string(make([]byte, 200+1))
	v := effects.VerifierFunc(func(context.Context, effects.Question) (effects.Answer, error) {
		return effects.Answer{}, nil
	})
	for name, c := range map[string]struct {
		name    string
		options []effects.Option
	}{
		"no name":      {"", nil},
		"bracket":      {"a[b", nil},
		"empty key":    {"a", []effects.Option{effects.WithKey("")}},
		"long key":     {"a", []effects.Option{effects.WithKey(long)}},
		"class":        {"a", []effects.Option{effects.Class("sometimes")}},
		"tx":           {"a", []effects.Option{effects.Tx}},
		"arguments":    {"a", []effects.Option{effects.Args(func() {})}},
		"attempts":     {"a", []effects.Option{effects.Attempts(0)}},
		"mode":         {"a", []effects.Option{effects.Verify(v, "odd")}},
		"no verifier":  {"a", []effects.Option{effects.Verify(nil, effects.Strict)}},
		"pure":         {"a", []effects.Option{effects.Verify(v, effects.Strict), effects.Pure}},
		"long content": {"a", []effects.Option{effects.Args(string(make([]byte, 256<<10)))}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, _ := b.run()
			fn := counting[int]{}
			_, err := effects.Do(ctx, c.name, fn.fn, c.options...)
			require.ErrorIs(t, err, effects.ErrUsage)
			require.Zero(t, fn.calls)
			require.Empty(t, b.store.Calls())
		})
	}
}
