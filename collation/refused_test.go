package collation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// E10: an action is one of three, and the result of done is a canonical payload.
func TestE10ActionsThatAreNone(t *testing.T) {
	t.Parallel()
	answer := &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK}
	for name, a := range map[string]collation.Action{
		"nothing":                 {},
		"a retry that is done":    {Retry: true, Done: []byte(`1`)},
		"done, and an answer":     {Done: []byte(`1`), Response: answer},
		"an answer of an effect":  {Response: answer, Effect: journal.Digest{1}},
		"no JSON":                 {Done: []byte(`yes`)},
		"empty":                   {Done: []byte{}},
		"not canonical":           {Done: []byte(`{"b":1, "a":2}`)},
		"larger than a result is": {Done: []byte(`"` + strings.Repeat("x", collation.MaxResult) + `"`)},
	} {
		require.ErrorIs(t, a.Check(), collation.ErrRejected, name)
	}
}

// E6: a result over the limit is refused before any other check.
func TestE6ResultOverTheLimit(t *testing.T) {
	t.Parallel()
	e := journal.Effect{Name: "pay", Result: make([]byte, collation.MaxResult+1)}
	_, err := (&collation.Chain{}).Finish(collation.Lease{}, e, false, collation.Mode{})
	require.ErrorIs(t, err, collation.ErrRejected)
}

// 1.11, C12: what a signal does to a wait. A repeating wait stays while signals say pass; an
// error ends it. A function's wait always ends.
func TestSignalsEndTheirWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait collation.Wait
		code int
		kind journal.ResponseKind
		gets int // code
		ends bool
	}{
		"once":                {collation.Wait{}, 200, journal.ResponseTerminal, 200, true},
		"once, to pass":       {collation.Wait{}, 202, journal.ResponseTerminal, 200, true},
		"once, an error":      {collation.Wait{}, 422, journal.ResponseTerminal, 422, true},
		"repeating, to pass":  {collation.Wait{Repeat: true, Count: 4}, 202, journal.ResponsePass, 200, false},
		"repeating":           {collation.Wait{Repeat: true, Count: 4}, 200, journal.ResponseTerminal, 200, true},
		"repeating, an error": {collation.Wait{Repeat: true, Count: 4}, 409, journal.ResponseTerminal, 409, true},
		"of a function":       {collation.Wait{Request: journal.GUID{9}}, 202, journal.ResponseWake, 200, true},
		"of a function, ill":  {collation.Wait{Request: journal.GUID{9}}, 409, journal.ResponseWake, 409, true},
	} {
		c.wait.GUID = journal.GUID{1}
		s := collation.Signal{GUID: journal.GUID{2}, Topic: "t", Key: "k", Code: c.code, Payload: []byte(`"told"`)}
		row, ends := c.wait.Deliver(&s, 5, collation.Mode{})
		require.Equal(t, c.ends, ends, name)
		x, err := journal.DecodeResponse(row.Body)
		require.NoError(t, err)
		require.Equal(t, []any{c.kind, c.gets, s.GUID, c.wait.Request}, []any{x.Kind, x.Code, x.Signal, x.Request}, name)
		if c.wait.Repeat {
			require.Equal(t, collation.SignalledGUID(c.wait.GUID, s.GUID), row.GUID)
			require.Equal(t, 5, x.Number, name)
		}
		if c.gets == collation.CodeOK {
			require.Equal(t, `"told"`, string(x.Output), name)
			continue
		}
		require.Nil(t, x.Output, name)
		require.Equal(t, []any{"signal", `"told"`}, []any{x.Error.Class, string(x.Error.Data)}, name)
	}
}

// 1.11: a wait passes over a signal that was kept longer than the wait allows, but over none
// that was sent since it began.
func TestWaitsTakeWhatIsNotTooOld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		age, since, sent collation.Micros
		takes            bool
	}{{0, 90, 1, true}, {10, 95, 90, true}, {10, 95, 89, false}, {1, 50, 50, true}} {
		w := collation.Wait{MaxAge: c.age, Since: c.since}
		require.Equal(t, c.takes, w.Takes(&collation.Signal{Sent: c.sent}, 100), "%+v", c)
	}
}
