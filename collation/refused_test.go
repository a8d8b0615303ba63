package collation_test

import (
	"crypto/sha256"
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

// E6: an output is stored under its own digest, up to its limit.
func TestE6PutPayload(t *testing.T) {
	t.Parallel()
	id, most := journal.JobID{1}, make([]byte, collation.MaxResult)
	p, err := collation.PutPayload(id, sha256.Sum256(most), most)
	require.NoError(t, err)
	require.Equal(t, collation.Payload{Digest: sha256.Sum256(most), Body: most}, *p.Payload)
	require.Equal(t, id, p.Job)
	over := append(most, 0)
	_, err = collation.PutPayload(id, sha256.Sum256(over), over)
	require.ErrorIs(t, err, collation.ErrRejected)
	_, err = collation.PutPayload(id, journal.Digest{1}, most)
	require.ErrorIs(t, err, collation.ErrRejected)
}

// C5, C10: a row ends if only the tombstone of its job is left, or neither the job nor its
// start exists. It stays if the job exists or may still begin.
func TestC5WhichRowsGo(t *testing.T) {
	t.Parallel()
	row := collation.RowKey{Job: journal.JobID{1}, GUID: journal.GUID{2}}
	job, start := &collation.State{}, &collation.Row{}
	for name, c := range map[string]struct {
		tombstone bool
		job       *collation.State
		start     *collation.Row
		goes      bool
	}{
		"a tombstone":              {tombstone: true, goes: true},
		"neither job nor start":    {goes: true},
		"the job":                  {job: job},
		"a child that may begin":   {start: start},
		"a key that is used again": {tombstone: true, start: start, goes: true},
	} {
		p := collation.Discard(row, c.tombstone, c.job, c.start)
		require.Equal(t, c.goes, p != nil, name)
		if c.goes {
			require.Equal(t, &collation.Plan{
				Job: row.Job, Message: row.GUID, Outcome: collation.Unlicensed, Done: true, Discard: []collation.RowKey{row},
			}, p, name)
		}
	}
}
