package orders_test

import (
	"encoding/json"
	"math/big"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/examples/orders"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// scope is a job with an input and the responses so far.
type scope map[string]flow.Result

func (s scope) Result(activity string) (flow.Result, bool) {
	r, ok := s[activity]
	return r, ok
}

func (scope) Budget() *flow.Budget { return flow.NewBudget(nil) }

func (scope) Job() flow.JobInfo { return flow.JobInfo{ID: "order", Flow: "order", Version: "1"} }

func parse(t *testing.T) *flow.Flow {
	t.Helper()
	text, err := os.ReadFile("order.yaml")
	require.NoError(t, err)
	f, err := flow.Parse("order.yaml", text)
	require.NoError(t, err)
	return f
}

// TestFlowChargesTheExactTotal: the flow's expressions and the rules of this
// package agree on the amount of every order, to the last decimal (5.1).
func TestFlowChargesTheExactTotal(t *testing.T) {
	t.Parallel()
	f := parse(t)
	charge, ok := f.Activity("charge")
	require.True(t, ok)
	for _, l := range orders.Generate(orders.Count) {
		raw, err := json.Marshal(l.Input)
		require.NoError(t, err)
		input, err := canonical.Payload(raw)
		require.NoError(t, err)
		require.NoError(t, f.CheckInput(input, flow.NewBudget(nil)), l.Key)
		text, err := charge.Input(scope{"start": {Output: input, Code: 200, Ran: true}})
		require.NoError(t, err, l.Key)
		var request struct {
			Body struct {
				Amount json.Number `json:"amount"`
			} `json:"body"`
		}
		require.NoError(t, json.Unmarshal(text, &request))
		got, ok := new(big.Rat).SetString(request.Body.Amount.String())
		require.True(t, ok, "%s: amount %q", l.Key, request.Body.Amount)
		want, err := l.Input.Total()
		require.NoError(t, err)
		require.Zero(t, want.Cmp(got), "%s: the flow charges %s, the rules say %s", l.Key, got.FloatString(6), want.FloatString(6))
	}
}

// TestTransitionsFollowTheRules: the way of an order after errors.
func TestTransitionsFollowTheRules(t *testing.T) {
	t.Parallel()
	f := parse(t)
	for _, c := range []struct {
		at, terms string
		code      int
		to        string
	}{
		{"charge", "invoice", 402, "invoice"},
		{"charge", "card", 402, ""},
		{"charge", "invoice", 500, ""},
		{"reserve", "card", 409, "refund"},
		{"reserve", "card", 500, ""},
	} {
		a, ok := f.Activity(c.at)
		require.True(t, ok)
		s := scope{
			"start": {Output: []byte(`{"customer":{"terms":"` + c.terms + `"}}`), Code: 200, Ran: true},
			c.at:    {Code: c.code, Ran: true},
		}
		taken := ""
		for _, tr := range a.Out {
			if !tr.OnError {
				continue
			}
			yes, err := tr.Taken(s)
			require.NoError(t, err)
			if yes {
				taken += tr.To.Name
			}
		}
		require.Equal(t, c.to, taken, "%s %d with terms %s", c.at, c.code, c.terms)
	}
}

// TestOutputNamesTheOutcome: what the demo compares with the rules.
func TestOutputNamesTheOutcome(t *testing.T) {
	t.Parallel()
	f := parse(t)
	start := flow.Result{Output: []byte(`{"order":"o1"}`), Code: 200, Ran: true}
	charged := flow.Result{Output: []byte(`{"body":{"amount":0.3,"id":"ch_1"}}`), Code: 200, Ran: true}
	ok := flow.Result{Code: 200, Ran: true}
	for want, s := range map[orders.Outcome]scope{
		orders.Shipped:  {"start": start, "charge": charged, "reserve": ok, "ship": ok},
		orders.Refunded: {"start": start, "charge": charged, "reserve": {Code: 409, Ran: true}, "refund": ok},
		orders.Invoiced: {"start": start, "charge": {Code: 402, Ran: true}, "invoice": ok},
	} {
		text, err := f.Output(s)
		require.NoError(t, err, want)
		var out struct {
			Order  string         `json:"order"`
			Status orders.Outcome `json:"status"`
			Charge *struct {
				ID string `json:"id"`
			} `json:"charge"`
		}
		require.NoError(t, json.Unmarshal(text, &out))
		require.Equal(t, want, out.Status)
		require.Equal(t, "o1", out.Order)
		require.Equal(t, want.Charged(), out.Charge != nil)
	}
}
