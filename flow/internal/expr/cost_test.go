package expr_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// budget is a tenth of that of a step, so that the tests are quick.
const budget = 400_000

var errOver = errors.New("over the budget")

// meter counts the units of a step.
type meter struct {
	spent, limit int64
	step         *expr.Step
}

func newMeter(limit int64) *meter {
	m := &meter{limit: limit}
	m.step = expr.NewStep(m.spend)
	return m
}

func (m *meter) spend(units int64) error {
	if units < 0 || m.spent+units > m.limit {
		return errOver
	}
	m.spent += units
	return nil
}

// priced is a source with values in canonical form, whose step is metered.
type priced struct {
	world
	canonical map[string][]byte
	*meter
}

func (p priced) Step() *expr.Step { return p.step }

func (p priced) Value(r expr.Ref) ([]byte, error) { return p.canonical[r.String()], nil }

// list is a JSON list of n elements.
func list(n int, format string) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = fmt.Sprintf(format, i)
	}
	return "[" + strings.Join(elements, ",") + "]"
}

// heavy is data of up to 1 MB, with a step of its own.
func heavy() priced {
	p := heavyData()
	return priced{p.world, maps.Clone(p.canonical), newMeter(budget)}
}

var heavyData = sync.OnceValue(func() priced {
	p := priced{world: world{}, canonical: map[string][]byte{}}
	for name, text := range map[string]string{
		"d.n": list(30_000, "%d"), "d.n5": list(5000, "%d"), "d.most": "[" + strings.Repeat("1,", 500_000) + "1]", "d.dec": list(5000, "%d.25"),
		"d.huge": list(300, "1%d."+strings.Repeat("7", 900)), "d.obj": list(5000, `{"a":%d,"b":"x"}`), "d.word": list(30_000, `"word %d"`),
		"d.long": `"` + strings.Repeat("a", 1_000_000) + `"`, "d.esc": `"` + strings.Repeat(`\u0001`, 150_000) + `"`,
		"d.zone": `"Europe/Berlin"`, "d.size": `1`, "item": `{}`,
	} {
		value, err := canonical.Payload([]byte(text))
		if err != nil {
			panic(err)
		}
		p.world[name], p.canonical[name] = text, value
	}
	return p
})

// doubled has n macros in a row, each of which multiplies its one element.
func doubled(n int, what string) string {
	return "[[1]]" + strings.Repeat(".map(l, "+what+")", n)
}

// costly has expressions that would take from seconds to years.
func costly() map[string]string {
	nested := strings.Repeat(`[1, 2, 3, 4, 5, 6].map(x, `, 8)
	return map[string]string{
		"a list in each pass":          `size(d.n.filter(x, x in d.n))`,
		"a sum in each pass":           `d.n5.map(x, sum(d.n5))`,
		"a sum of decimals":            `d.dec.map(x, sum(d.dec))`,
		"filters in each other":        `d.n.filter(x, d.n.filter(y, y == x).size() > 0).size()`,
		"macros in each other":         nested + "1" + strings.Repeat(")", 8),
		"lists put together":           nested + "d.n + [1]" + strings.Repeat(")", 8),
		"a list doubled":               doubled(15, "l + l + l + l"),
		"a list of itself":             doubled(15, "[l, l, l, l]") + ".map(l, [l, l] == [l, l])",
		"a text doubled":               `[d.long]` + strings.Repeat(".map(s, s + s + s + s)", 15) + ".size()",
		"objects compared":             `d.obj.map(x, d.obj.map(y, {"x": x} == {"x": y}))`,
		"long texts compared":          `d.n.map(x, d.long < d.long + "b").size() + d.n.map(x, size(d.long)).size()`,
		"a text looked for":            `d.n.map(x, d.long.contains("` + strings.Repeat("a", 100) + `b"))`,
		"words compared":               `d.word.exists(x, d.word.exists(y, x < y && x.startsWith(y) && false))`,
		"a pattern on a long text":     `d.long.matches("` + strings.Repeat(".*", 1500) + `")`,
		"a pattern that goes back":     `d.n.map(x, d.long.matches("(a*)*b"))`,
		"patterns made of data":        `d.n.map(x, "a".matches("` + strings.Repeat(`[a-z]{9}`, 100) + `" + string(x)))`,
		"division of long numbers":     `d.huge.map(x, d.huge.map(y, x / y))`,
		"products of long numbers":     `d.huge.map(x, d.huge.map(y, x * 3))`,
		"remainders of long numbers":   `d.huge.map(x, d.huge.map(y, 7 % y))`,
		"long numbers as text":         `d.huge.map(x, d.huge.map(y, number(string(y))))`,
		"a text that is no number":     `d.n.exists(x, number(d.long) == 1)`,
		"a text that is no duration":   `d.n.exists(x, duration(d.long) == duration("1s"))`,
		"a text that is no list":       `d.most.exists(x, d.long.all(c, c))`,
		"time zones":                   `d.n.map(x, timestamp("2020-01-01T00:00:00Z").getHours(d.zone))`,
		"many terms":                   `d.n.all(x, ` + strings.Repeat("false || ", 700) + `true)`,
		"many elements":                `d.n.map(x, [` + strings.Repeat("1, ", 2000) + `1])`,
		"a long list gone through":     `d.most.map(x, d.most.map(y, y))`,
		"an error that is taken in":    `d.most.exists(x, d.most.exists(y, y.gone))`,
		"escapes written again, again": `d.n.map(x, d.esc + string(x)).map(s, size(s))`,
	}
}

// What data or an expression can make long ends at the budget, in time and in memory.
func TestCostlyExpressionsEndAtTheBudget(t *testing.T) { // not parallel: it measures the heap
	for name, source := range costly() {
		data := heavy()
		program, problems := expr.NewCompiler().Compile(source, data)
		require.Empty(t, problems, name)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := program.AppendJSON(nil, data)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, errOver, name)
		perUnit := (after.TotalAlloc - before.TotalAlloc) / uint64(data.spent+1)
		require.Less(t, perUnit, uint64(100), "%s: bytes for each of %d units", name, data.spent)
		_, err = program.Bool(data)
		require.ErrorIs(t, err, errOver, "%s: the rest is not enough either", name)
	}
}

// A value that names one part many times is larger as text than in memory.
func TestResultsEndAtTheirLimit(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`[d.n` + strings.Repeat(`, d.n`, 20) + `]`,
		`[d.n]` + strings.Repeat(`.map(l, [l, l])`, 16),
		`[d.long, d.long]`, `{"a": d.long, "b": d.long}`, `d.esc + d.esc`,
	} {
		data := heavy()
		program, problems := expr.NewCompiler().Compile(source, data)
		require.Empty(t, problems)
		out, err := program.AppendJSON(nil, data)
		require.ErrorContains(t, err, "more than 1048576 bytes", source)
		require.LessOrEqual(t, len(out), 2*expr.MaxResultBytes, "it ends while it is written")
	}
}

// What a step has read costs once, wherever it is mentioned; an element costs each time.
func TestReadOnce(t *testing.T) {
	t.Parallel()
	data := heavy()
	large := `{"a":{"b":1,"c":` + list(10_000, `"%d"`) + `},"z":2}`
	data.world = maps.Clone(data.world)
	data.world["d.large"], data.canonical["d.large"] = large, []byte(large)
	spent := func(source string) int64 {
		program, problems := expr.NewCompiler().Compile(source, data)
		require.Empty(t, problems)
		before := data.spent
		_, err := program.AppendJSON(nil, data)
		require.NoError(t, err)
		return data.spent - before
	}
	require.Greater(t, spent(`d.large.z`), int64(1000))
	require.Less(t, spent(`d.large.z`), int64(10))
	require.Greater(t, spent(`d.large.a.b`), int64(1000))
	for _, source := range []string{`d.large.z`, `d.large.a.b`, `d.large.z + 1`, `d.large.a.b + 1`} {
		require.Less(t, spent(source), int64(50), source)
	}
	data.canonical["d.large"] = bytes.Clone(data.canonical["d.large"])
	require.Less(t, spent(`d.large.z + 1`), int64(50), "the same in another place")
	data.canonical["d.large"] = []byte(strings.Replace(large, `"z":2`, `"z":3`, 1))
	require.Greater(t, spent(`d.large.z + 1`), int64(1000), "another value")
	data.canonical["item"] = []byte(list(1000, "%d"))
	require.Equal(t, spent(`size(item)`), spent(`size(item)`))
}

// The units of an evaluation are the same everywhere: for another compiler, for a program that
// was made for another expression, for a program that was used before.
func TestUnitsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	shared := expr.NewCompiler()
	sources := []string{
		`{"b": item, "a": [1.5], "c": string(index)}.map(k, k + "x")`, `{"y": 1, "x": 2, "z": 3}.exists(k, k == "x")`,
		`item.matches("^[a-z]+$") || index in [1, 2, item]`, `[item, index, [item]].filter(x, x != index) == [item, [item]]`,
		`number("1.5") * 7 / index + sum([index, 0.25])`, `item + index`, `has(item.a) ? item.a : "none"`, `item.a.b`, `[1, 2].all(x, x && true)`,
	}
	rapid.Check(t, func(t *rapid.T) {
		source := rapid.SampledFrom(sources).Draw(t, "source")
		values := map[string][]byte{}
		for _, name := range []string{"item", "index", "a.output", "b.output"} {
			values[name] = []byte(rapid.SampledFrom([]string{
				`"abc"`, `7`, `0.5`, `null`, `{"a":{"b":"x"}}`, `[1,"x",{"k":[]}]`, `"` + strings.Repeat("é", 300) + `"`,
			}).Draw(t, name))
		}
		units := func(c *expr.Compiler, source string) (int64, string) {
			w := world{"item": "1", "index": "1", "a.output": "1", "b.output": "1"}
			program, problems := c.Compile(source, w)
			if len(problems) > 0 {
				return 0, fmt.Sprint(problems)
			}
			m := newMeter(budget)
			out, err := program.AppendJSON(nil, priced{w, values, m})
			return m.spent, fmt.Sprintf("%s %v", out, err)
		}
		spent, value := units(expr.NewCompiler(), source)
		for range 3 {
			again, other := units(shared, source)
			require.Equal(t, spent, again)
			require.Equal(t, value, other)
		}
		values["a.output"], values["b.output"] = values["item"], values["index"]
		named := strings.NewReplacer("item", "a.output", "index", "b.output").Replace(source)
		first, _ := units(shared, named)
		second, _ := units(expr.NewCompiler(), named)
		require.Equal(t, first, second, named)
	})
}

// An object goes through its keys in the order of their bytes, also one that an expression makes.
func TestObjectsHaveAnOrder(t *testing.T) {
	t.Parallel()
	program, problems := expr.NewCompiler().Compile(`{"c": 1, "a": 2, "b": 3, "d": 4, "c": 5}.map(k, k)`, data)
	require.Empty(t, problems)
	for range 20 {
		got, err := program.AppendJSON(nil, data)
		require.NoError(t, err)
		require.Equal(t, `["a","b","c","d"]`, string(got))
	}
}

// A regular expression has a limit, as a literal and as data.
func TestRegularExpressionsAreBounded(t *testing.T) {
	t.Parallel()
	for pattern, message := range map[string]string{
		strings.Repeat(`[a-z]{1000}`, 20):                                       "at most 10000 steps",
		strings.Join(strings.Split("abcdefghijklmnopqrstuvwxyz", ""), "{500}|"): "at most 10000 steps",
		`(`: "missing closing )",
	} {
		_, problems := expr.NewCompiler().Compile(`"a".matches("`+pattern+`")`, data)
		require.NotEmpty(t, problems)
		require.Contains(t, problems[0].Message, message)
		program, problems := expr.NewCompiler().Compile(`"a".matches("`+pattern+`" + "")`, data)
		require.Empty(t, problems)
		_, err := program.Bool(data)
		require.ErrorContains(t, err, message)
	}
	program, problems := expr.NewCompiler().Compile(`"a".matches(d.long)`, heavy())
	require.Empty(t, problems)
	data := heavy()
	_, err := program.Bool(data)
	require.ErrorContains(t, err, "at most 8192 bytes")
}

// A message never has the whole of a long value, nor an address.
func TestMessagesAreShort(t *testing.T) {
	t.Parallel()
	for source, message := range map[string]string{
		`number(d.long)`: `aaa…" is not a number`, `{"a": 1}[d.long]`: "no such key: aaa",
	} {
		data := heavy()
		program, problems := expr.NewCompiler().Compile(source, data)
		require.Empty(t, problems, source)
		_, err := program.AppendJSON(nil, data)
		require.ErrorContains(t, err, message)
		require.Less(t, len(err.Error()), 3000)
	}
}

// The type checker takes the cube of the depth of a type.
func TestNestingIsBounded(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"[%s]", `{"a": %s}`, `[1].map(x, %s)`, `%s.map(x, x)`} {
		nested := func(n int) string {
			text := "[]"
			for range n {
				text = fmt.Sprintf(source, text)
			}
			return text
		}
		_, problems := expr.NewCompiler().Compile(nested((expr.MaxNesting-1)/2), data)
		require.Empty(t, problems)
		_, problems = expr.NewCompiler().Compile(nested(expr.MaxNesting), data)
		require.NotEmpty(t, problems)
		require.Contains(t, problems[0].Message, "nested deeper than 20")
	}
}
