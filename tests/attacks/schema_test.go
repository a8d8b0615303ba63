package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
)

// A schema whose alternatives lead into themselves, and one that looks at the same items many times.
const (
	filtered = `
flow: filtered
version: "1"
input:
  $defs: {node: {oneOf: [
    {type: object, required: [op, args], properties: {op: {const: and}, args: {type: array, items: {$ref: '#/$defs/node'}}}},
    {type: object, required: [op, args], properties: {op: {const: or},  args: {type: array, items: {$ref: '#/$defs/node'}}}},
    {type: object, required: [var], properties: {var: {type: string}}}]}}
  properties: {where: {$ref: '#/$defs/node'}}
activities: {start: {type: trigger}}
`
	looked = `
flow: looked
version: "1"
input: {allOf: [LOOKS]}
activities: {start: {type: trigger}}
`
	asking = `
flow: asking
version: "1"
activities:
  start: {type: trigger}
  child: {type: await, flow: FLOW, id: "${ start.output.key }", input: "${ start.output.input }"}
transitions: {start: [child]}
`
)

// An input that makes much work is checked or refused, whether a process, a parent or a client's row
// asks for the job; and other jobs go on.
func TestAnInputThatMakesMuchWork(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	rt := g.open(nil)
	g.Deploy(rt, filtered)
	g.Deploy(rt, strings.Replace(looked, "LOOKS", strings.Repeat("{uniqueItems: true},", 1000), 1))
	for _, child := range []string{"filtered", "looked"} {
		g.Deploy(rt, strings.NewReplacer("asking", "asking_"+child, "FLOW", child).Replace(asking))
	}
	g.Run(rt)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	deep := `{"where":` + strings.Repeat(`{"op":"or","args":[`, 40) + `{"var":"a"}` + strings.Repeat(`]}`, 40) + `}`
	wide := `["` + strings.Repeat("wide", 100_000) + `",1]`
	_, err := rt.Start(ctx, "looked", "refused", json.RawMessage(wide))
	require.ErrorIs(t, err, quipu.ErrInput)
	require.ErrorContains(t, err, fmt.Sprint(flow.MaxStepCost))
	first, err := rt.Start(ctx, "filtered", "first", json.RawMessage(deep))
	require.NoError(t, err)
	_, err = rt.Wait(ctx, first)
	require.NoError(t, err)

	conn := g.admin()
	for name, input := range map[string]string{"filtered": deep, "looked": wide} {
		order := fmt.Sprintf(`{"flow":"%s","key":"row-%[1]s","input":%s}`, name, input)
		_, err = conn.Exec(ctx, row("start", "'ask'", order, "gen_random_uuid()"))
		require.NoError(t, err)
		_, err = rt.Start(ctx, "asking_"+name, "parent-"+name, json.RawMessage(fmt.Sprintf(`{"key":"child-%s","input":%s}`, name, input)))
		require.NoError(t, err)
	}
	_, failed := ended(t, rt, "filtered", "another", map[string]any{})
	require.Nil(t, failed)
	wait := func(key string) error {
		job, err := rt.Find(ctx, key)
		require.NoError(t, err)
		_, err = rt.Wait(ctx, job)
		return err
	}
	require.NoError(t, wait("parent-filtered"))
	err = wait("parent-looked")
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 400, failed.Code)
	require.ErrorContains(t, err, fmt.Sprint(flow.MaxStepCost))
	g.until(func() bool {
		return g.count(conn, "dispatches") == 0 && g.count(conn, "jobs WHERE key = 'row-filtered'") == 1
	})
	require.NoError(t, wait("row-filtered"))
	require.Zero(t, g.count(conn, "jobs WHERE key IN ('row-looked', 'child-looked')"))
}
