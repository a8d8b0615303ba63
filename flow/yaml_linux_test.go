package flow_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// sources are of many values, lines, texts and levels, and grow with n.
var sources = map[string]func(n int) string{
	"mapping":   numbered("k%d: 1\n"),
	"list":      func(n int) string { return strings.Repeat("-\n", n/2) },
	"braces":    func(n int) string { return "{" + numbered("k%d: 1, ")(n) + "}" },
	"brackets":  func(n int) string { return "[" + strings.Repeat("1,", n/2) + "]" },
	"documents": func(n int) string { return strings.Repeat("---\n", n/4) },
	"comments":  func(n int) string { return strings.Repeat("#\n", n/2) },
	"anchors":   func(n int) string { return "x:\n" + numbered("- &a%d 1\n")(n) },
	"long alias": func(n int) string {
		return "x: &a " + strings.Repeat("x", n/2) + "\ny: [" + strings.Repeat("*a,", n/6) + "]"
	},
	"quoted lines": func(n int) string { return "a: \"" + strings.Repeat("\n", n) + "\"" },
	"quotes":       func(n int) string { return "a: '" + strings.Repeat("''", n/2) + "'" },
	"plain lines":  func(n int) string { return "a:" + strings.Repeat("\n b", n/3) },
	"literal":      func(n int) string { return "a: |\n" + strings.Repeat(" b\n", n/3) },
	"open":         func(n int) string { return strings.Repeat("[", n) },
	"dashes":       func(n int) string { return strings.Repeat("- ", n/2) },
	"levels":       func(n int) string { return levels(n) },
	"long keys":    func(n int) string { return "{" + strings.Repeat("k", n/2) + ": {" + numbered("k%d: 1,")(n/2) + "}}" },
	"same keys":    func(n int) string { return "{" + strings.Repeat("k: 1,", n/5) + "}" },
	"escapes":      func(n int) string { return "a: \"" + strings.Repeat(`\u00e9`, n/6) + "\"" },
	"one line":     func(n int) string { return strings.Replace(worker("input: [X]"), "X", strings.Repeat("${x},", n/5), 1) },
	"one text":     func(n int) string { return strings.Replace(worker("input: 'X'"), "X", strings.Repeat("${", n/2), 1) },
	"braced texts": func(n int) string { return strings.Replace(worker("input: 'X'"), "X", strings.Repeat("{{", n/2), 1) },
	"activities":   func(n int) string { return head + "activities: {" + numbered("k%d: 1,")(n) + "}" },
	"unknown words": func(n int) string {
		return head + "activities: {" + strings.Repeat("k", n/2) + ": {type: worker, " + numbered("k%d: 1,")(n/2) + "}}"
	},
}

func numbered(format string) func(int) string {
	return func(n int) string {
		var text strings.Builder
		for i := 0; text.Len() < n; i++ {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
}

func levels(n int) string {
	var text strings.Builder
	for i := 0; text.Len() < n; i++ {
		text.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return text.String()
}

// cpu is the time for which this thread has computed, whatever else the machine does.
func cpu(t *testing.T) time.Duration {
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_THREAD, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// The time to read or to refuse a source grows with its length, as YAML and as JSON. At the length
// of this test, what grew with its square took minutes.
func TestReadingTakesTimeThatGrowsWithTheLength(t *testing.T) {
	t.Parallel()
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			began := cpu(t)
			_, _ = flow.Parse("f.yaml", []byte(source(flow.MaxDefinitionBytes/32)))
			require.Less(t, cpu(t)-began, 4*time.Second)
		})
	}
	for _, src := range []string{"[" + strings.Repeat("1,", flow.MaxNodes) + "1]", strings.Repeat("[", flow.MaxNodes)} {
		_, err := flow.Parse("f.json", []byte(src))
		require.Error(t, err)
	}
}
