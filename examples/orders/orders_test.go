package orders_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/examples/orders"
)

var update = flag.Bool("update", false, "write orders.jsonl anew")

// TestFileIsGenerated: orders.jsonl is what the generator writes.
func TestFileIsGenerated(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	require.NoError(t, orders.Write(&want, orders.Generate(orders.Count)))
	if *update {
		require.NoError(t, os.WriteFile("orders.jsonl", want.Bytes(), 0o644))
	}
	got, err := os.ReadFile("orders.jsonl")
	require.NoError(t, err)
	require.True(t, bytes.Equal(want.Bytes(), got), "go test ./examples/orders -update writes it anew")
}

// TestVariety: every outcome, every currency, flaky cards and quantities that
// need decimals are in the file, and keys are unique.
func TestVariety(t *testing.T) {
	t.Parallel()
	seen, keys, items := map[string]int{}, map[string]bool{}, map[int]int{}
	for _, l := range read(t) {
		require.False(t, keys[l.Key], l.Key)
		keys[l.Key] = true
		seen[string(l.Input.Expected())]++
		seen[l.Input.Currency]++
		items[len(l.Input.Lines)]++
		if orders.Flaky(l.Input.Card) {
			seen["flaky"]++
		}
		total, err := l.Input.Total()
		require.NoError(t, err)
		require.Positive(t, total.Sign(), l.Key)
		require.True(t, total.IsInt() || l.Input.Currency != "JPY", l.Key)
	}
	require.Len(t, keys, orders.Count)
	require.Len(t, items, orders.MaxLines)
	for _, what := range []string{"shipped", "refunded", "invoiced", "failed", "flaky", "EUR", "USD", "GBP", "JPY", "KWD"} {
		require.GreaterOrEqual(t, seen[what], 40, what)
	}
}

func TestTotalIsExact(t *testing.T) {
	t.Parallel()
	o := orders.Order{
		Currency: "EUR", Tax: "0", Shipping: "0",
		Lines: []orders.Item{{Price: "0.1", Quantity: "1"}, {Price: "0.2", Quantity: "1"}},
	}
	total, err := o.Total()
	require.NoError(t, err)
	require.Equal(t, "3/10", total.String())
	o.Tax, o.Shipping = "0.15", "4.9" // 0.3 × 1.15 = 0.345: a half goes up
	total, err = o.Total()
	require.NoError(t, err)
	require.Equal(t, "5.25", total.FloatString(2))
	o.Tax = "much"
	_, err = o.Total()
	require.ErrorContains(t, err, "much")
}

func read(t *testing.T) []orders.Line {
	t.Helper()
	f, err := os.Open("orders.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var lines []orders.Line
	for s := bufio.NewScanner(f); s.Scan(); {
		var l orders.Line
		require.NoError(t, json.Unmarshal(s.Bytes(), &l))
		lines = append(lines, l)
	}
	return lines
}
