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
