package flow_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/canonical"
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

func TestTheSameFlowHasTheSameDigest(t *testing.T) {
	t.Parallel()
	parsed := readFlow(t, "order.yaml")
	require.Equal(t, orderDigest, parsed.Digest().String(), "stored flows depend on the canonical form")
	built, err := builtOrder().Build()
	require.NoError(t, err)
	require.Equal(t, string(parsed.Canonical()), string(built.Canonical()))
	fromJSON, err := flow.Parse("order.json", parsed.Canonical())
	require.NoError(t, err)
	stored, err := flow.FromCanonical(parsed.Canonical())
	require.NoError(t, err)
	for _, f := range []*flow.Flow{built, fromJSON, stored} {
		require.Equal(t, parsed.Digest(), f.Digest())
		require.Equal(t, namesOf(parsed), namesOf(f))
	}
	same, err := canonical.Payload(parsed.Canonical())
	require.NoError(t, err)
	require.Equal(t, parsed.Canonical(), same)
}

func namesOf(f *flow.Flow) []string {
	var names []string
	for _, a := range f.Activities() {
		names = append(names, a.Name)
	}
	return names
}

func TestModel(t *testing.T) {
	t.Parallel()
	f := readFlow(t, "order.yaml")
	require.Equal(t, "order", f.Name())
	require.Equal(t, "1", f.Version())
	require.Equal(t, flow.Caller, f.Identity())
	require.Equal(t, 720*time.Hour, f.Expire())
	require.Equal(t, []string{"start", "charge", "refund", "ship", "audit"}, namesOf(f))
	require.Equal(t, []string{"charge", "ship"}, f.OutputNeeds())
	for i, a := range f.Activities() {
		require.Equal(t, i, a.Index)
	}
	start, charge := f.Trigger(), mustActivity(t, f, "charge")
	require.Equal(t, flow.TypeTrigger, start.Type)
	require.Nil(t, start.Parent)
	require.Equal(t, 0, start.Depth)
	require.Equal(t, flow.TypeWorker, charge.Type)
	require.Equal(t, "payments.charge", charge.Topic)
	require.Same(t, start, charge.Parent)
	require.Equal(t, 1, charge.Depth)
	require.Equal(t, 30*time.Second, charge.Timeout)
	require.Equal(t, []string{"start"}, charge.InputNeeds())
	require.Equal(t, flow.Retry{Attempts: 5, Backoff: 100 * time.Millisecond, Factor: 1.5, Max: time.Minute}, charge.Retry)
	require.Len(t, charge.Out, 2)
	toRefund := charge.Out[0]
	require.True(t, toRefund.OnError)
	require.Equal(t, []string{"charge"}, toRefund.Needs())
	refund := mustActivity(t, f, "refund")
	require.Same(t, refund, toRefund.To)
	require.Same(t, charge, toRefund.From)
	require.Equal(t, []*flow.Transition{toRefund}, refund.In)
	require.Equal(t, flow.DefaultRetry, refund.Retry)
	require.Equal(t, 48*time.Hour, refund.Within)
	require.Equal(t, "idempotent", refund.Class)
	require.Empty(t, refund.InputNeeds())
	_, ok := f.Activity("gone")
	require.False(t, ok)
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
