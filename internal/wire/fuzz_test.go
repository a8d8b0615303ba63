package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// FuzzResponse: a worker's response is refused, or can be recorded in an entry that every
// reader accepts: honest data always verifies (P19, V2).
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"terminal","code":200,"output":{"a":1e2}}`,
		`{"kind":"failed","code":503,"error":{"class":"x","message":"a\u0000b"},"retry_after_ms":5}`,
		`{"kind":"terminal","code":402,"error":{"class":"business","message":"é","data":[1.50,"\ud800"],"stack":"s"}}`,
		`{"kind":"parked","code":500,"error":{"class":"parked","message":""}}`,
		`{"kind":"terminal","code":200,"ref":"00"}`, `{}`, `[]`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode[Response](b)
		if err != nil {
			return
		}
		recorded, err := r.Journal()
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		e := &journal.Entry{
			Space: "s", Job: journal.JobID{1}, Generation: 1, Seq: 1, Kind: journal.KindLeg2, Response: recorded,
		}
		_, err = journal.Decode(journal.Record{Job: e.Job, Seq: e.Seq, Body: journal.Encode(e)})
		require.NoError(t, err)
	})
}
