package expr_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// world is a scope and a source: a.output, b.output and job, and item, which is itself a
// value.
type world map[string]string

func (w world) Known(name string) bool {
	for key := range w {
		if strings.HasPrefix(key, name+".") {
			return true
		}
	}
	return false
}

func (w world) Whole(name string) bool { return name == "item" || name == "index" }

func (w world) Mention(r expr.Ref) string {
	if _, ok := w[r.String()]; !ok {
		return "no " + r.String()
	}
	return ""
}

func (w world) IsTime(r expr.Ref) bool { return r.Field == "started" }

func (world) Step() *expr.Step { return expr.NewStep(func(int64) error { return nil }) }

func (w world) Value(r expr.Ref) ([]byte, error) {
	text := w[r.String()]
	if text == "" {
		return nil, errors.New("not loaded")
	}
	return canonical.Payload([]byte(text))
}

var data = world{
	"a.output": `{"n": 7, "half": 0.5, "s": "x\"y", "list": [3, 1, 2.50], "o": {"k": null, "b": true}, "big": 9223372036854775807,
		"lines": [{"price": "10.10", "qty": 3}, {"price": "0.05", "qty": 1}], "é": 1, "deep": {"er": {"x": [1]}}}`,
	"b.output":    `[1, {"x": 1}]`,
	"b.code":      `503`,
	"b.error":     `null`,
	"c.output":    ``,
	"item":        `{"sku": "a1", "n": 2}`,
	"job.id":      `"order-42"`,
	"job.started": `"2026-01-02T03:04:05.000006Z"`,
}

// cases reads the lines of a file: an expression, an arrow, and what follows from it.
func cases(t testing.TB, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if source, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  =>  "); ok {
			out[source] = want
		}
	}
	require.NotEmpty(t, out)
	return out
}

func TestValues(t *testing.T) {
	t.Parallel()
	values := cases(t, "values.txt")
	whole, err := canonical.Payload([]byte(data["a.output"]))
	require.NoError(t, err)
	values["a.output"] = string(whole)
	for source, want := range values {
		program, problems := expr.NewCompiler().Compile(source, data)
		require.Empty(t, problems, source)
		got, err := program.AppendJSON(nil, data)
		require.NoError(t, err, source)
		require.Equal(t, want, string(got), source)
		again, err := canonical.Payload(got)
		require.NoError(t, err, source)
		require.Equal(t, string(got), string(again))
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for source, want := range cases(t, "problems.txt") {
		_, problems := expr.NewCompiler().Compile(source, data)
		require.NotEmpty(t, problems, source)
		place, message, _ := strings.Cut(want, ": ")
		require.Contains(t, problems[0].Message, message, source)
		require.Equal(t, place, strconv.Itoa(problems[0].Offset), source)
	}
	_, problems := expr.NewCompiler().Compile(strings.Repeat("1+", expr.MaxBytes/2)+"1", data)
	require.Contains(t, problems[0].Message, "8192 bytes")
	_, problems = expr.NewCompiler().Compile(strings.Repeat("(", 200)+"1"+strings.Repeat(")", 200), data)
	require.NotEmpty(t, problems)
}

func TestEvaluationErrors(t *testing.T) {
	t.Parallel()
	for source, message := range cases(t, "errors.txt") {
		program, problems := expr.NewCompiler().Compile(source, data)
		require.Empty(t, problems, source)
		_, err := program.AppendJSON(nil, data)
		require.ErrorContains(t, err, message, source)
	}
}

func TestBool(t *testing.T) {
	t.Parallel()
	compiler := expr.NewCompiler()
	for source, want := range map[string]bool{`a.output.o.b`: true, `a.output.n > 10`: false, `!a.output.o.b || b.code != 503`: false} {
		program, problems := compiler.Compile(source, data)
		require.Empty(t, problems)
		require.True(t, program.IsBool())
		got, err := program.Bool(data)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, source := range []string{`a.output.n`, `a.output["n"]`} {
		program, problems := compiler.Compile(source, data)
		require.Empty(t, problems)
		require.True(t, program.IsBool(), "its type is not known before it runs")
		_, err := program.Bool(data)
		require.ErrorContains(t, err, "not true or false")
	}
	program, problems := compiler.Compile(`1 + 1`, data)
	require.Empty(t, problems)
	require.False(t, program.IsBool())
}

// Expressions of one shape share a program, and each reads its own mentions.
func TestShapesAreShared(t *testing.T) {
	t.Parallel()
	two := world{"a.output": `1`, "b.output": `2`, "long_name.output": `40`}
	compiler := expr.NewCompiler()
	for source, want := range map[string]string{
		`a.output + b.output * 10`:               `21`,
		`b.output + long_name.output * 10`:       `402`,
		`"a.output" + string(long_name.output)`:  `"a.output40"`,
		`"a.output" + string(b.output)`:          `"a.output2"`,
		`a.output + a.output * 10`:               `11`,
		`[1].map(b, b + a.output)[0] + b.output`: `4`,
		`a .output + b.output * 10`:              `21`,
		`b .output + b.output * 10`:              `22`,
	} {
		program, problems := compiler.Compile(source, two)
		require.Empty(t, problems, source)
		got, err := program.AppendJSON(nil, two)
		require.NoError(t, err)
		require.Equal(t, want, string(got), source)
	}
}

// Refs has no field for a value that is mentioned as a whole.
func TestRefs(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][]expr.Ref{
		`item.sku`:                        {{Name: "item"}},
		`item.sku == item.n`:              {{Name: "item"}},
		`a.output.n + item.n + b.code`:    {{"a", "output"}, {Name: "item"}, {"b", "code"}},
		`[1].map(item, item) == [job.id]`: {{"job", "id"}},
	} {
		program, problems := expr.NewCompiler().Compile(source, data)
		require.Empty(t, problems)
		require.Equal(t, want, program.Refs(), source)
	}
}

// `each` needs a list; a type that certainly is none is refused at deploy.
func TestTypesThatTheCheckerKnows(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][2]bool{
		`a.output`:                {true, true},
		`[1]`:                     {true, false},
		`a.output.list.map(x, x)`: {true, false},
		`a.output.n == 1`:         {false, true},
		`1 + 1`:                   {false, false},
		`[a.output][0]`:           {true, true},
	} {
		program, problems := expr.NewCompiler().Compile(source, data)
		require.Empty(t, problems)
		require.Equal(t, want, [2]bool{program.IsList(), program.IsBool()}, source)
	}
}
