package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/flow/internal/expr"
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

// valueCases are expressions and the JSON of their values.
var valueCases = map[string]string{
	// exact numbers
	`0.1 + 0.2 == 0.3`:                          `true`,
	`0.1 + 0.2`:                                 `0.3`,
	`a.output.half + 1`:                         `1.5`,
	`a.output.half * 2`:                         `1`,
	`a.output.half * 2 == 1`:                    `true`,
	`1 == 1.0 && 1.0 in [1, 2] && 2.50 == 2.5`:  `true`,
	`a.output.list[2] == 2.5`:                   `true`,
	`a.output.list[1.0]`:                        `1`,
	`2.5 in a.output.list`:                      `true`,
	`a.output.big + 1`:                          `9223372036854775808`,
	`a.output.big + 1 - 1 == a.output.big`:      `true`,
	`-a.output.big - 2`:                         `-9223372036854775809`,
	`-(-9223372036854775807 - 1)`:               `9223372036854775808`,
	`4611686018427387904 * 2`:                   `9223372036854775808`,
	`7 / 2`:                                     `3.5`,
	`1 / 3`:                                     `0.` + strings.Repeat("3", 34),
	`2 / 3`:                                     `0.` + strings.Repeat("6", 33) + `7`,
	`10.00 / 4`:                                 `2.5`,
	`7 % 3 == 1 && -7 % 3 == -1 && 7 % -3 == 1`: `true`,
	`5.5 % 2`:                                   `1.5`,
	`1e3 % 7`:                                   `6`,
	`-0.5`:                                      `-0.5`,
	`- 0.5`:                                     `-0.5`,
	`.5`:                                        `0.5`,
	`0.1234567890123456789012345678901234567890`:          `0.123456789012345678901234567890123456789`,
	`a.output.n > 6.99 && a.output.half < 1`:              `true`,
	`a.output.half >= 0.50 && !(1.5 <= 1)`:                `true`,
	`number("12.50") + int("3") + int(-2.9)`:              `13.5`,
	`string(0.50) + string(100.0) + string(1e21)`:         `"0.51001e21"`,
	`round(2.345, 2)`:                                     `2.35`,
	`round(-2.345, 2)`:                                    `-2.35`,
	`round(1234, -2)`:                                     `1200`,
	`round(1.5, 5)`:                                       `1.5`,
	`[floor(-1.5), ceil(1.2), abs(-3.5), round(0.4, 0)]`:  `[-2,2,3.5,0]`,
	`sum(a.output.lines.map(l, number(l.price) * l.qty))`: `30.35`,
	`sum([])`: `0`,
	// JSON values
	`a.output`:                                     mustCanonical(data["a.output"]),
	`a.output.o`:                                   `{"b":true,"k":null}`,
	`a.output.o.k == null`:                         `true`,
	`a.output["é"]`:                                `1`,
	`a.output.s + "z"`:                             `"x\"yz"`,
	`has(a.output.o.k)`:                            `true`,
	`has(a.output.gone)`:                           `false`,
	`has(a.output.deep.er.x)`:                      `true`,
	`"n" in a.output`:                              `true`,
	`size(a.output.list) + size("äö")`:             `5`,
	`a.output.o == {"k": null, "b": true}`:         `true`,
	`{"b": true, "k": null} == a.output.o`:         `true`,
	`{"z": a.output.o, "a": [a.output.half]}`:      `{"a":[0.5],"z":{"b":true,"k":null}}`,
	`b.output == [1, {"x": 1.0}]`:                  `true`,
	`[0] + b.output + [2]`:                         `[0,1,{"x":1},2]`,
	`a.output.list.filter(x, x > 1).map(x, x * 2)`: `[6,5]`,
	// a name that is itself a value
	`item`:                                           `{"n":2,"sku":"a1"}`,
	`item.sku`:                                       `"a1"`,
	`item["sku"] + "/" + item.sku`:                   `"a1/a1"`,
	`has(item.sku) && !has(item.x)`:                  `true`,
	`item.n + a.output.n`:                            `9`,
	`size(item)`:                                     `2`,
	`[1, 2].map(item, item * 2)`:                     `[2,4]`,
	`[1, 2].map(x, x * item.n)`:                      `[2,4]`,
	`"item" + item . sku`:                            `"itema1"`,
	`a.output.list.exists(x, x == 2.5)`:              `true`,
	`a.output.list.all(a, a > 0.5)`:                  `true`,
	`a.output.o.all(k, k in ["k", "b"])`:             `true`,
	`a.output.list.exists_one(x, x == 1)`:            `true`,
	`b.code == 503 ? "again" : "stop"`:               `"again"`,
	`b.error == null`:                                `true`,
	`"ab".startsWith("a") && "abc".matches("^a.c$")`: `true`,
	`"a" < "b" && false < true`:                      `true`,
	`type(0.5) == type(1.5) && type(1) == int`:       `true`,
	`job.id`:                        `"order-42"`,
	`job.started`:                   `"2026-01-02T03:04:05.000006Z"`,
	`job.started + duration("24h")`: `"2026-01-03T03:04:05.000006Z"`,
	`job.started < timestamp("2027-01-01T00:00:00Z")`: `true`,
	`job.started - timestamp("2026-01-02T03:04:00Z")`: `"5.000006s"`,
	`job.started.getFullYear()`:                       `2026`,
	`b"ab"`:                                           `"YWI="`,
	`dyn("é")`:                                        `"é"`,
	`a . output . n`:                                  `7`,
}

func TestValues(t *testing.T) {
	t.Parallel()
	for source, want := range valueCases {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			program, problems := expr.NewCompiler().Compile(source, data)
			require.Empty(t, problems)
			got, err := program.AppendJSON(nil, data)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
			again, err := canonical.Payload(got)
			require.NoError(t, err)
			require.Equal(t, string(got), string(again))
		})
	}
}

func mustCanonical(text string) string {
	got, err := canonical.Payload([]byte(text))
	if err != nil {
		panic(err)
	}
	return string(got)
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source  string
		offset  int
		message string
	}{
		{`a.output.`, 9, "no viable"},
		{`1 + "a"`, 2, "+ cannot be applied to a number and a string"},
		{`"é" + 1`, 4, "+ cannot be applied to a string and a number"},
		{`a.output.n + 1 + "x"`, 15, "+ cannot be applied to a number and a string"},
		{`!1`, 0, "! cannot be applied to a number"},
		{`1 && true`, 0, "this must be a boolean, it is a number"},
		{`1 ? 1 : 2`, 2, "? cannot be applied to a number: the condition must be a boolean"},
		{`true ? 1 : "a"`, 5, "? : cannot give either a number or a string"},
		{`1 in 2`, 2, "in cannot be applied to a number and a number"},
		{`[1]["x"]`, 3, "[ ] cannot be applied to a list and a string"},
		{`"x".startsWith(1)`, 14, "startsWith cannot be applied to a string and a number"},
		{`[1] + {"a": [2]}`, 4, "+ cannot be applied to a list and an object"},
		{`job.started + 1`, 12, "+ cannot be applied to a time and a number"},
		{`(1).map(x, x)`, 1, "only a list or an object can be gone through, not a number"},
		{`gone + 1`, 0, "unknown name gone"},
		{`1 + gone.output`, 4, "no gone.output"},
		{`a.outptu`, 0, "no a.outptu"},
		{`a`, 0, "stands for no value"},
		{`a["output"]`, 0, "stands for no value"},
		{`index`, 0, "no index"},
		{`1 + index`, 4, "no index"},
		{`[1].map(x, index.a)`, 11, "no index"},
		{`has(a.output)`, 4, "always there"},
		{`double(1)`, 6, "no double"},
		{`1u + 2`, 0, "without u"},
		{`{1: 2}`, 1, "key must be a string"},
		{`"a".matches("(")`, 12, "invalid matches"},
		{`nothing(1)`, 7, "undeclared reference"},
		{`1 < "a"`, 2, "< cannot be applied to a number and a string"},
		{`a.output.list.map(x, y)`, 21, "unknown name y"},
		{`99999999999999999999`, 0, "int"},
		{`Foo{}`, 3, "message types"},
		{strings.Repeat("1+", expr.MaxBytes/2) + "1", 0, "8192 bytes"},
		{strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), 0, ""},
	} {
		t.Run(c.source[:min(len(c.source), 30)], func(t *testing.T) {
			t.Parallel()
			_, problems := expr.NewCompiler().Compile(c.source, data)
			require.NotEmpty(t, problems)
			require.Contains(t, problems[0].Message, c.message)
			if c.message != "" {
				require.Equal(t, c.offset, problems[0].Offset, problems[0].Message)
			}
		})
	}
}

func TestEvaluationErrors(t *testing.T) {
	t.Parallel()
	for source, message := range map[string]string{
		`a.output.gone`:                           "no such key: gone",
		`a.output.n.gone`:                         "no such key: gone",
		`a.output.gone + 1`:                       "no such key: gone",
		`a.output.list[9]`:                        "index out of bounds",
		`a.output.n + a.output.s`:                 "+ cannot be applied to a number and a string (column 12 of the expression)",
		`a.output.s + a.output.n`:                 "+ cannot be applied to a string and a number",
		`a.output.s < a.output.n`:                 "< cannot be applied to a string and a number",
		`a.output.s * 2`:                          "* cannot be applied to a string and a number",
		`1 / (a.output.n - 7)`:                    "division by zero",
		`1 % (a.output.n - 7)`:                    "division by zero",
		`number(a.output.s)`:                      "not a number",
		`number("[1]")`:                           "not a number",
		`1e300 * 1e300 * 1e300 * 1e300`:           "beyond 10^±1000",
		`1e300 * 1e300 * 1e300 + 1e-300 * 1e-300`: "more than 1000 digits",
		`c.output.x`:                              "not loaded",
		`c.output + 1`:                            "not loaded",
		`"\u0000"`:                                "U+0000",
		`{a.output.n: 1}`:                         "key that is not a string",
		`type(1)`:                                 "no form in JSON",
		`round(1.5, 1000)`:                        "up to 100 places",
		`sum(["a"])`:                              "+ cannot be applied to a number and a string (column 4 of the expression)",
		`!a.output.n`:                             "! cannot be applied to a number (column 1 of the expression)",
		`a.output.n && true`:                      "&& cannot be applied to a number (column 12 of the expression)",
		`a.output.n ? 1 : 2`:                      "? cannot be applied to a number: the condition must be a boolean (column 12 of the expression)",
		`size(a.output.n)`:                        "size cannot be applied to a number (column 5 of the expression)",
		`a.output.s.startsWith(a.output.n)`:       "startsWith cannot be applied to a string and a number (column 22 of the expression)",
		`a.output.n in a.output.o.k`:              "in cannot be applied to a number and null (column 12 of the expression)",
		`a.output.n.map(x, x)`:                    "only a list or an object can be gone through, not a number",
		`a.output.list.all(x, x)`:                 "cannot be applied to a number",
		`job.started + a.output.n`:                "+ cannot be applied to a time and a number (column 13 of the expression)",
		`"é" + item.n`:                            "+ cannot be applied to a string and a number (column 5 of the expression)",
		`[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, a)))))`: "cost limit",
	} {
		t.Run(source[:min(len(source), 40)], func(t *testing.T) {
			t.Parallel()
			program, problems := expr.NewCompiler().Compile(source, data)
			require.Empty(t, problems)
			_, err := program.AppendJSON(nil, data)
			require.ErrorContains(t, err, message)
		})
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
