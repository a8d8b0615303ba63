package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// TestZeroFieldsAreLeftOut: an entry, and each of its parts, has no member for a zero value
// (2.2), unless another value would be implied.
func TestZeroFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]journal.Entry{
		`{"as":"sg","v":3}`: {},
		`{"as":"sg","b":{"of":{},"p":[{}]},"p":{},"q":{},"s":[{}],"up":[{}],"v":3,"w":[{}]}`: {
			Dispatched: []journal.Dispatched{{
				GUID: journal.DeriveRequest(journal.GUID{}, 0), Kind: journal.MessageRequest,
			}},
			Updated: []journal.Updated{{Kind: journal.MessageRequest, Turn: 0, Attempt: 0}},
			Waits:   []journal.Wait{{GUID: journal.DeriveWakeUp(journal.GUID{}, journal.BySignal, "")}},
			Parent:  &journal.Parent{}, Result: &journal.Result{Code: 200},
			Response: &journal.Response{
				Kind: journal.ResponseTerminal, Code: 200, Pauses: make([]journal.Pause, 1), Of: &journal.PauseRef{},
			},
		},
		`{"as":"sg","bd":{},"c":{"e":{}},"e":{"k":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},"f":{},"op":{},"v":3,"wr":{}}`: {
			Close: &journal.Close{State: journal.JobCompleted, Error: &journal.Failure{}}, Trouble: &journal.Trouble{},
			Flow:   &journal.FlowRef{},
			Effect: &journal.Effect{Key: journal.Digest{1}, Class: "guarded", Turn: 1, Fence: 1},
			Bound:  &journal.Bound{}, Operator: &journal.Operator{},
		},
		// Counts are written even if they are zero.
		`{"as":"sg","el":[0,0,""],"o":0,"se":0,"v":3}`: {
			Elements: &journal.Elements{}, Open: new(int), Semaphore: new(int64),
		},
	} {
		e.Kind = journal.KindSignal
		require.Equal(t, want, string(journal.Encode(&e)))
		got, err := journal.Decode(record(&e))
		require.NoError(t, err)
		require.Equal(t, &e, got)
	}
}

// TestResponsesRoundTrip: a response in the body of a dispatch row is read back whole, and is
// the same JSON as in an entry.
func TestResponsesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawn[journal.Response]().Draw(t, "response")
		body := journal.EncodeResponse(&r)
		got, err := journal.DecodeResponse(body)
		require.NoError(t, err)
		require.Equal(t, &r, got)
		again, err := canonical.Payload(body)
		require.NoError(t, err)
		require.Equal(t, string(body), string(again))
		entry := journal.Encode(&journal.Entry{Kind: journal.KindLeg2, Response: &r})
		require.Contains(t, string(entry), `"b":`+string(body))
	})
}

func TestDecodeResponseRefuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]error{
		``: journal.ErrNotCanonical, `[]`: journal.ErrNotCanonical, `{"k":"terminal"`: journal.ErrNotCanonical,
		`{} `: journal.ErrNotCanonical, `{"st":1,"k":"a"}`: journal.ErrNotCanonical, `{"k":"terminal"}`: journal.ErrNotCanonical, `{"st":"1"}`: journal.ErrNotCanonical,
		`{"st":200}`: journal.ErrNotCanonical, `{"k":"\u0061"}`: journal.ErrNotCanonical, `{"k": "a"}`: journal.ErrNotCanonical,
		`{"x":1}`: journal.ErrUnknownField, `{"e":{"x":1}}`: journal.ErrUnknownField,
	} {
		got, err := journal.DecodeResponse([]byte(body))
		require.ErrorIs(t, err, want, body)
		require.Nil(t, got, body)
	}
}

// FuzzDecodeResponse: nothing panics, and a response that is read has one spelling.
func FuzzDecodeResponse(f *testing.F) {
	f.Add(journal.EncodeResponse(full().Response))
	f.Add([]byte(`{"by":"timer"}`))
	f.Add([]byte(`{"k":"suspended","p":[{"f":"5","k":"sleep","n":"a","p":"1"}],"tn":1}`))
	f.Add([]byte(`{"k":"wake","of":{"k":"child","n":"a","p":"1.0.2"}}`))
	f.Add([]byte(`{"e":{"c":"error","d":[1,"\""]},"o":{"a":null}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := journal.DecodeResponse(body)
		if err != nil {
			require.Nil(t, r)
			return
		}
		require.Equal(t, string(body), string(journal.EncodeResponse(r)))
	})
}

// FuzzDecodeFrom: nothing panics, and what is read can be written.
func FuzzDecodeFrom(f *testing.F) {
	f.Add(journal.EncodeFrom(full().From))
	f.Add([]byte(`{"a":"charge","d":",0,0"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		from, err := journal.DecodeFrom(body)
		if err != nil {
			return
		}
		again, err := journal.DecodeFrom(journal.EncodeFrom(from))
		require.NoError(t, err)
		require.Equal(t, from, again)
	})
}

func TestUndoPause(t *testing.T) {
	t.Parallel()
	p := journal.UndoPause("refund:2", 7)
	require.Equal(t, journal.PauseRef{Kind: journal.PauseSleep, Name: "undo:refund:2:7", Position: "undo"}, p)
	name, failures, is := p.Undo()
	require.True(t, is)
	require.Equal(t, "refund:2", name)
	require.Equal(t, 7, failures)
	for _, other := range []journal.PauseRef{
		{},
		{Kind: journal.PauseSleep, Name: "undo:refund:7", Position: "3"},
		{Kind: journal.PauseSleep, Name: "undo:refund", Position: "undo"},
		{Kind: journal.PauseSleep, Name: "undo:refund:x", Position: "undo"},
		{Kind: journal.PauseSignal, Name: "undo:refund:7", Position: "undo"},
	} {
		_, _, is := other.Undo()
		require.False(t, is, other)
	}
}
