package orders_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/examples/orders"
)

// TestGeneratesTheSameOrders: the demo's orders are the same everywhere.
func TestGeneratesTheSameOrders(t *testing.T) {
	t.Parallel()
	sum := sha256.New()
	require.NoError(t, json.NewEncoder(sum).Encode(orders.Generate(orders.Count)))
	require.Equal(t, "a93783e35adec86db0316a5ececc02955866b6488f640867399096cb1c644fcf", hex.EncodeToString(sum.Sum(nil)))
}

// TestVariety: every outcome, every currency, flaky cards and quantities that
// need decimals are among the orders, and keys are unique.
func TestVariety(t *testing.T) {
	t.Parallel()
	seen, keys, items := map[string]int{}, map[string]bool{}, map[int]int{}
	for _, l := range orders.Generate(orders.Count) {
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
