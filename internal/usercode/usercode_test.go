package usercode_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/usercode"
)

type stranger struct{ does func() string }

func (s stranger) Error() string   { return s.does() }
func (s stranger) String() string  { return s.does() }
func (s stranger) Unwrap() []error { s.does(); return nil }

type loop struct{}

func (loop) Error() string    { return "loop" }
func (l *loop) Unwrap() error { return l }

type named struct{ name string }

func (n *named) Error() string { return n.name }

// as says of itself that it is another error.
type as struct{ with func() *named }

func (as) Error() string { return "as" }
func (a as) As(to any) bool {
	n, is := to.(**named)
	if is {
		*n = a.with()
	}
	return is
}

func TestTextAndValueAreBounded(t *testing.T) {
	t.Parallel()
	boom := stranger{func() string { panic("boom") }}
	nested := stranger{func() string { panic(boom) }}
	huge := stranger{func() string { return strings.Repeat("ü", usercode.MaxText) }}
	var nothing *named
	for want, got := range map[string]string{
		"":      usercode.Text(nil),
		"plain": usercode.Text(errors.New("plain")),
		"an error of type usercode_test.stranger, whose method Error panicked: boom":                                   usercode.Text(boom),
		"an error of type usercode_test.stranger, whose method Error panicked: a value of type usercode_test.stranger": usercode.Text(nested),
		"a nil *usercode_test.named was returned as an error: return nil itself where there is none":                   usercode.Text(nothing),
		"7": usercode.Value(7), "text": usercode.Value("text"), "true": usercode.Value(true), "1.5": usercode.Value(1.5),
		"a value of type map[string]int": usercode.Value(map[string]int{"a": 1}),
		"a value of type <nil>":          usercode.Value(nil),
	} {
		require.Equal(t, want, got)
	}
	joined := usercode.Text(errors.Join(errors.New("a"), nothing, errors.New("b")))
	require.True(t, strings.HasSuffix(joined, "; a; a nil *usercode_test.named; b"), joined)
	for _, text := range []string{usercode.Text(huge), usercode.Value(huge)} {
		require.LessOrEqual(t, len(text), usercode.MaxText)
		require.True(t, strings.HasPrefix(text, "üüü") && strings.HasSuffix(text, "ü…"))
	}
}

func TestChainsEnd(t *testing.T) {
	t.Parallel()
	require.Empty(t, usercode.Chain(nil))
	require.Len(t, usercode.Chain(&loop{}), usercode.MaxChain)
	deep := errors.New("deep")
	tree := fmt.Errorf("x: %w, %w", errors.Join(deep, errors.New("b")), stranger{func() string { panic("boom") }})
	var nothing *named
	chain := usercode.Chain(errors.Join(nothing, stranger{func() string { panic("boom") }}, deep))
	require.True(t, usercode.Is(usercode.Chain(fmt.Errorf("%w", deep)), deep))
	require.True(t, usercode.Is(chain, deep))
	require.False(t, usercode.Is(chain, errors.New("deep")))
	_, ok := usercode.As[*named](chain)
	require.False(t, ok, "a nil pointer is none")
	for _, a := range []as{{func() *named { return nil }}, {func() *named { panic("boom") }}} {
		_, ok = usercode.As[*named](usercode.Chain(a))
		require.False(t, ok)
	}
	got, ok := usercode.As[*named](usercode.Chain(fmt.Errorf("%w", as{func() *named { return &named{"n"} }})))
	require.True(t, ok)
	require.Equal(t, "n", got.name)
	var want []string // as errors.As looks at them
	for _, e := range usercode.Chain(tree) {
		want = append(want, fmt.Sprintf("%T", e))
	}
	require.Equal(t, []string{"*fmt.wrapErrors", "*errors.joinError", "*errors.errorString", "*errors.errorString", "usercode_test.stranger"}, want)
}

type bad struct{ slog.Handler }

func TestALogThatPanicsLosesItsLine(t *testing.T) {
	t.Parallel()
	require.NotPanics(t, func() {
		slog.New(usercode.Log(bad{})).With("a", 1).WithGroup("g").Error("x")
	})
}
