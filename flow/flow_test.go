package flow_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

func readFlow(t testing.TB, name string) *flow.Flow {
	t.Helper()
	src, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	f, err := flow.Parse(name, src)
	require.NoError(t, err)
	return f
}

// builtOrder is testdata/order.yaml, in Go.
func builtOrder() *flow.Builder {
	input := map[string]any{
		"amount": "${ start.output.total }", "who": "order ${ job.id } of ${ start.output.customer }, $${literal}", "mode": "live", "fee": 0.1,
		"list": []any{1, "${ start.output.total * 1.19 }", nil},
	}
	return flow.New("order").Version("1").Identity(flow.Caller).
		Input(`{"type":"object","required":["total"],"properties":{"total":{"type":"number","minimum":1e-2},
			"lines":{"type":"array","items":{"type":"object","required":["sku"]}}}}`).
		Output(map[string]any{"receipt": "${ charge.output.id }", "shipped": "${ !ship.skipped }", "paid": 1.1}).
		Expire(720*time.Hour).
		Trigger("start").
		Worker("charge", "payments.charge", flow.Input(input), flow.Timeout(30*time.Second),
			flow.Retry{Attempts: 5, Backoff: 100 * time.Millisecond, Factor: 1.5, Max: time.Minute, Jitter: -1}).
		Worker("refund", "payments.refund", flow.Class("idempotent"), flow.Within(48*time.Hour)).
		Worker("ship", "stock.ship").
		Worker("audit", "audit.write", flow.Input(input)).
		Transition("start", "charge").
		Transition("charge", "refund", flow.OnError(), flow.When("charge.code == 402")).
		Transition("charge", "ship", flow.When("charge.output.risk <= 0.5")).
		Transition("ship", "audit")
}

const orderDigest = "65d41a57e78b95eb1fbf11ee82e143f41e13460cf24de036f93df744090522a0"

func namesOf(f *flow.Flow) []string {
	var names []string
	for _, a := range f.Activities() {
		names = append(names, a.Name)
	}
	return names
}

func mustActivity(t testing.TB, f *flow.Flow, name string) *flow.Activity {
	t.Helper()
	a, ok := f.Activity(name)
	require.True(t, ok)
	return a
}

// All faults are reported at once, each with its place.
func TestFaultyFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*_faults.yaml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = flow.Parse(filepath.Base(file), src)
		var faults flow.Faults
		require.ErrorAs(t, err, &faults)
		want, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".txt")
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(string(want)), faults.Error())
		require.GreaterOrEqual(t, len(faults), 10)
	}
}

func TestStrictKey(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "order.yaml")
	key := f.StrictKey([]byte(`{"total":1}`))
	require.Len(t, key, 64)
	require.Equal(t, key, f.StrictKey([]byte(`{"total":1}`)))
	require.NotEqual(t, key, f.StrictKey([]byte(`{"total":2}`)))
}

func TestFromCanonicalRefusesWhatWasChanged(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "order.yaml")
	_, err := flow.FromCanonical(append([]byte(" "), f.Canonical()...))
	require.ErrorIs(t, err, flow.ErrNotCanonical)
	_, err = flow.FromCanonical([]byte(`{"flow":"a"}`))
	var faults flow.Faults
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults, 2)
}
