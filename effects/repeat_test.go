package effects

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/effectstest"
)

func newStore() *effectstest.Store {
	s := effectstest.New()
	s.Put(theRequest, nil)
	return s
}

func TestE2TheSameKeyTwiceInOneRun(t *testing.T) {
	t.Parallel()
	one := func(context.Context) (int, error) { return 1, nil }
	for name, c := range map[string]struct {
		first, second []Option
		names         [2]string
		duplicate     bool
	}{
		"same name":                {nil, nil, [2]string{"a", "a"}, true},
		"other name":               {nil, nil, [2]string{"a", "b"}, false},
		"other key":                {[]Option{WithKey("1")}, []Option{WithKey("2")}, [2]string{"a", "a"}, false},
		"same key":                 {[]Option{WithKey("1")}, []Option{WithKey("1")}, [2]string{"a", "a"}, true},
		"same key, other name":     {[]Option{WithKey("1")}, []Option{WithKey("1")}, [2]string{"a", "b"}, true},
		"same key, other args":     {[]Option{WithKey("1"), Args(1)}, []Option{WithKey("1"), Args(2)}, [2]string{"a", "a"}, true},
		"other args":               {[]Option{Args(1)}, []Option{Args(2)}, [2]string{"a", "a"}, false},
		"same args":                {[]Option{Args(1)}, []Option{Args(1.0)}, [2]string{"a", "a"}, true},
		"declared once":            {nil, []Option{Once()}, [2]string{"a", "a"}, false},
		"once, but other args too": {[]Option{WithKey("1"), Args(1)}, []Option{WithKey("1"), Args(2), Once()}, [2]string{"a", "a"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, s := b.run()
			_, err := Do(ctx, c.names[0], one, c.first...)
			require.NoError(t, err)
			_, err = Do(ctx, c.names[1], one, c.second...)
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
		v, err := Do(ctx, "charge", slow, Once())
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
		options []Option
		shows   string
	}{
		"other name":   {"refund", []Option{WithKey("k"), Args(1)}, `"refund[k]{`},
		"other args":   {"charge", []Option{WithKey("k"), Args(2)}, `"charge[k]{`},
		"args left":    {"charge", []Option{WithKey("k")}, `"charge[k]"`},
		"same as then": {"charge", []Option{WithKey("k"), Args(1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, _ := b.run()
			_, err := Do(ctx, "charge", one, WithKey("k"), Args(1))
			require.NoError(t, err)
			recorded := b.store.Rows(theRequest)[0].Name
			ctx, s := b.again()
			_, err = Do(ctx, c.name, one, c.options...)
			if c.shows == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(*NondeterminismError))
			require.ErrorContains(t, err, recorded)
			require.ErrorContains(t, err, c.shows)
			require.ErrorAs(t, s.Verdict(), new(*NondeterminismError))
			require.Len(t, b.store.Rows(theRequest), 1, "nothing was done")
		})
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	long := string(make([]byte, MaxKey+1))
	v := VerifierFunc(func(context.Context, Question) (Answer, error) { return Answer{}, nil })
	for name, c := range map[string]struct {
		name    string
		options []Option
		want    error
	}{
		"no name":      {"", nil, ErrUsage},
		"bracket":      {"a[b", nil, ErrUsage},
		"empty key":    {"a", []Option{WithKey("")}, ErrUsage},
		"long key":     {"a", []Option{WithKey(long)}, ErrUsage},
		"class":        {"a", []Option{Class("sometimes")}, ErrUsage},
		"tx":           {"a", []Option{Tx}, ErrTx},
		"arguments":    {"a", []Option{Args(func() {})}, ErrUsage},
		"attempts":     {"a", []Option{Attempts(0)}, ErrUsage},
		"mode":         {"a", []Option{Verify(v, "odd")}, ErrUsage},
		"no verifier":  {"a", []Option{Verify(nil, Strict)}, ErrUsage},
		"pure":         {"a", []Option{Verify(v, Strict), Pure}, ErrUsage},
		"long content": {"a", []Option{Args(string(make([]byte, MaxArgs)))}, ErrUsage},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, _ := b.run()
			fn := counting[int]{}
			_, err := Do(ctx, c.name, fn.fn, c.options...)
			require.ErrorIs(t, err, c.want)
			require.Zero(t, fn.calls)
			require.Empty(t, b.store.Calls())
		})
	}
}
