package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/wire"
)

var (
	sleep  = wire.Pause{Kind: journal.PauseSleep, Name: "nap", Position: "1", For: 1_000_000}
	signal = wire.Pause{Kind: journal.PauseSignal, Name: "ok", Position: "2", Topic: "order.ok", Key: "order-1", For: 5}
	child  = wire.Pause{Kind: journal.PauseChild, Name: "bill", Position: "3.0.1", Flow: "invoice", Version: "2", Key: "bill-1", Input: []byte(`{"b":1.0,"a":2}`)}
)

// E12: the pauses of a suspension arrive unchanged, with canonical payloads.
func TestE12SuspensionRoundTrip(t *testing.T) {
	t.Parallel()
	sent := wire.Encode(wire.SuspendedUntil([]wire.Pause{sleep, signal, child}))
	r, err := wire.Decode[wire.Response](sent)
	require.NoError(t, err)
	got, err := r.Journal()
	require.NoError(t, err)
	require.Equal(t, journal.ResponseSuspended, got.Kind)
	require.Len(t, got.Pauses, 3)
	require.Equal(t, journal.Pause{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap", Position: "1"}, For: 1_000_000}, got.Pauses[0])
	require.Equal(t, "order.ok", got.Pauses[1].Topic)
	require.Equal(t, int64(5), got.Pauses[1].For)
	require.JSONEq(t, `{"a":2,"b":1}`, string(got.Pauses[2].Input))
	require.Equal(t, `{"a":2,"b":1}`, string(got.Pauses[2].Input), "canonical")
}

// An invalid pause is refused, with its place and the limit.
func TestE12SuspensionRefused(t *testing.T) {
	t.Parallel()
	change := func(p wire.Pause, f func(*wire.Pause)) []wire.Pause { f(&p); return []wire.Pause{p} }
	many := make([]wire.Pause, wire.MaxPauses+1)
	for i := range many {
		many[i] = sleep
		many[i].Name = fmt.Sprint(i)
	}
	for name, c := range map[string]struct {
		pauses []wire.Pause
		says   string
	}{
		"none":             {nil, "0 pauses"},
		"too many":         {many, "1001 pauses"},
		"twice":            {[]wire.Pause{sleep, sleep}, `"nap" is named twice`},
		"no name":          {change(sleep, func(p *wire.Pause) { p.Name = "" }), "no name"},
		"no position":      {change(sleep, func(p *wire.Pause) { p.Position = "" }), "no position"},
		"long name":        {change(sleep, func(p *wire.Pause) { p.Name = strings.Repeat("n", 201) }), "its name has 201 bytes"},
		"NUL":              {change(sleep, func(p *wire.Pause) { p.Name = "a\x00" }), "its name"},
		"before time":      {change(sleep, func(p *wire.Pause) { p.For = -1 }), "-1 µs"},
		"unknown kind":     {change(sleep, func(p *wire.Pause) { p.Kind = "nap" }), "neither a sleep"},
		"sleep on a topic": {change(sleep, func(p *wire.Pause) { p.Topic = "t" }), "neither a sleep"},
		"signal nowhere":   {change(signal, func(p *wire.Pause) { p.Topic = "" }), "neither a sleep"},
		"child of nothing": {change(child, func(p *wire.Pause) { p.Flow = "" }), "neither a sleep"},
		"child, no input":  {change(child, func(p *wire.Pause) { p.Input = nil }), "neither a sleep"},
		"no JSON":          {change(child, func(p *wire.Pause) { p.Input = []byte("{") }), "pause 0"},
		"large input":      {change(child, func(p *wire.Pause) { p.Input = []byte(`"` + strings.Repeat("x", wire.MaxPauseBytes) + `"`) }), "the limit of a suspension is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wire.SuspendedUntil(c.pauses).Journal()
			require.ErrorIs(t, err, wire.ErrMalformed)
			require.ErrorContains(t, err, c.says)
		})
	}
	r := wire.SuspendedUntil([]wire.Pause{sleep})
	r.Output = []byte("1")
	_, err := r.Journal()
	require.ErrorContains(t, err, "nothing else")
}

// Undone belongs to a terminal error.
func TestUndoneOfATerminalError(t *testing.T) {
	t.Parallel()
	e := &wire.Failure{Class: "error", Message: "no"}
	got, err := (&wire.Response{Kind: journal.ResponseTerminal, Code: 500, Error: e, Undone: true}).Journal()
	require.NoError(t, err)
	require.True(t, got.Undone)
	_, err = (&wire.Response{Kind: journal.ResponseFailedAttempt, Code: 500, Error: e, Undone: true}).Journal()
	require.ErrorIs(t, err, wire.ErrMalformed)
	_, err = (&wire.Response{Kind: journal.ResponseTerminal, Code: 200, Undone: true}).Journal()
	require.ErrorIs(t, err, wire.ErrMalformed)
}
