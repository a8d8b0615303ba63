package expr_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// FuzzCompile: an expression is refused with places inside its text, or has a canonical
// value or an error, the same every time and at the same price, which has an end. Its payload is
// arbitrary.
func FuzzCompile(f *testing.F) {
	for text := range cases(f, "values.txt") {
		f.Add(text, `{"n":1}`)
	}
	for _, text := range []string{"item.x[", "1/0", "'\\u0000'", "[1].map(x, x", "1e400*1e400", "item.n - 0.1", "{'a': item}", "item.s.matches('(a+)+$')", "duration('1s')", "@0", "item.list.sum()"} {
		f.Add(text, `{"list":[1,2.5],"n":1e-9,"s":"aaaaaaaaaaaaaaaaaaaaaaaa!"}`)
	}
	f.Fuzz(func(t *testing.T, text, payload string) {
		w := world{"item": payload, "a.output": data["a.output"], "job.started": data["job.started"]}
		if _, err := canonical.Payload([]byte(payload)); err != nil || payload == "" {
			w["item"] = `{}`
		}
		p, problems := expr.NewCompiler().Compile(text, w)
		if p == nil {
			require.NotEmpty(t, problems)
			for _, problem := range problems {
				require.NotEmpty(t, problem.Message)
				require.True(t, problem.Offset >= 0 && problem.Offset <= len([]rune(text)), "%q: %+v", text, problem)
			}
			return
		}
		require.LessOrEqual(t, len(p.Refs()), expr.MaxMentions)
		first, second := metered{w, newMeter(budget)}, metered{w, newMeter(budget)}
		start := time.Now()
		value, err := p.AppendJSON(nil, first)
		require.Less(t, time.Since(start), 10*time.Second, "%d units", first.spent)
		again, differs := p.AppendJSON(nil, second)
		require.Equal(t, first.spent, second.spent)
		require.Equal(t, fmt.Sprint(err), fmt.Sprint(differs))
		if err != nil {
			return
		}
		require.Equal(t, string(value), string(again))
		got, err := canonical.Payload(value)
		require.NoError(t, err, "%s", value)
		require.Equal(t, string(got), string(value), "the value is canonical")
		taken, err := p.Bool(w)
		require.Equal(t, err == nil, string(value) == "true" || string(value) == "false")
		require.Equal(t, taken, string(value) == "true")
		within, err := p.AppendText([]byte(`"`), w)
		require.NoError(t, err)
		quoted, err := canonical.Payload(append(within, '"'))
		require.NoError(t, err)
		require.Equal(t, string(within)+`"`, string(quoted))
	})
}

// metered is a source whose step is metered.
type metered struct {
	world
	*meter
}

func (m metered) Step() *expr.Step { return m.step }

// FuzzNumber: an expression returns a number of a payload unchanged, and sums and
// differences of two are exact (1.0 is 1, no digit is lost).
func FuzzNumber(f *testing.F) {
	for _, seed := range [][2]string{{"0.1", "0.2"}, {"9223372036854775807", "1"}, {"1e-900", "1e900"}, {"-0", "0.00"}, {"7", "0"}, {"123456789012345678901234567890", "-1.5"}} {
		f.Add(seed[0], seed[1])
	}
	c := expr.NewCompiler()
	programs := map[string]*expr.Program{}
	for _, text := range []string{"item[0] + 0", "item[0] + item[1] - item[1]", "item[0] == item[1]", "item[0] < item[1]", "item[0] > item[1]", "item[0] * 1", "-(-item[0])"} {
		p, problems := c.Compile(text, data)
		require.Empty(f, problems)
		programs[text] = p
	}
	f.Fuzz(func(t *testing.T, x, y string) {
		list, err := canonical.Payload([]byte("[" + x + "," + y + "]"))
		if err != nil || strings.ContainsAny(x+y, "[]{}\",tfn") {
			return
		}
		first, err := canonical.Payload([]byte(x))
		require.NoError(t, err)
		second, err := canonical.Payload([]byte(y))
		require.NoError(t, err)
		w := world{"item": string(list)}
		for _, text := range []string{"item[0] + 0", "item[0] + item[1] - item[1]", "item[0] * 1", "-(-item[0])"} {
			if got, err := programs[text].AppendJSON(nil, w); err == nil {
				require.Equal(t, string(first), string(got), text)
			} else {
				require.Contains(t, text, "item[1]", "%s of %s: %v", text, x, err) // a sum may be too long
			}
		}
		n := 0
		for _, text := range []string{"item[0] == item[1]", "item[0] < item[1]", "item[0] > item[1]"} {
			is, err := programs[text].Bool(w)
			require.NoError(t, err)
			if is {
				n++
			}
			if text == "item[0] == item[1]" {
				require.Equal(t, string(first) == string(second), is, "one number, one spelling")
			}
		}
		require.Equal(t, 1, n, "one of equal, less, greater")
	})
}
