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
				Job:       row.Job,
				Message:   row.GUID,
				Outcome:   collation.NoRow,
				Done:      true,
				RowWrites: collation.RowWrites{Discard: []collation.RowKey{row}},
			}, p, name)
		}
	}
}

// 1.11: who ordered a child hears of its begin if that is all that it waits for, and of a refusal
// if it waits for anything. The start row ends with the refusal.
func TestAChildAnswersWhoOrderedIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parent      journal.Parent
		told, heard bool
	}{
		"an await":                        {journal.Parent{Turn: 1, Awaited: true}, false, true},
		"an await of the begin":           {journal.Parent{Turn: 1}, true, true},
		"a function":                      {journal.Parent{Awaited: true}, false, true},
		"a function that has ended (3.5)": {journal.Parent{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.parent.Job, c.parent.Activity, c.parent.DAD = journal.JobID{1}, "a", ",0"
			order := &collation.StartOrder{Flow: "f", Key: "k\"", Parent: c.parent}
			require.Equal(t, c.heard, order.Heard())
			row := &collation.Row{Job: journal.JobID{2}, GUID: journal.GUID{2}, Kind: journal.MessageStart}
			p := collation.Begin(collation.Inception{
				Space: "s", Key: order.Key, Trigger: "start", Now: 7, Order: row, Parent: &order.Parent,
			}, nil, collation.Mode{})
			require.Len(t, p.Update, 1)
			if !c.told {
				require.Empty(t, p.Insert)
			} else {
				require.Len(t, p.Insert, 1)
				require.Equal(t, []any{
					c.parent.Job, journal.MessageOutcome, "a", collation.OutcomeGUID(row.Job.Start(), c.parent.Turn),
				},
					[]any{p.Insert[0].Job, p.Insert[0].Kind, p.Insert[0].Activity, p.Insert[0].GUID})
				require.Contains(t, string(p.Insert[0].Body), `{"id":"k\""}`)
			}

			p = order.Refused(row, 404, "not_found", "no such flow", 7, collation.Mode{})
			require.Equal(t, []journal.GUID{row.GUID}, p.Delete)
			require.Len(t, p.Insert, 1)
			require.Equal(t, c.parent.Job, p.Insert[0].Job)
			require.Contains(t, string(p.Insert[0].Body), "no such flow")
		})
	}
}
