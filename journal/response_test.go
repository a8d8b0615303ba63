package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// TestZeroFieldsAreLeftOut: an entry, and each of its parts, has no member for
// what is zero (2.2).
func TestZeroFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	const frame = `"job":"00000000-0000-0000-0000-000000000000","k":"leg2"`
	for want, e := range map[string]journal.Entry{
		`{` + frame + `,"v":1}`: {},
		`{"dis":[{}],` + frame + `,"pa":{},"rs":{"of":{},"p":[{}]},"rt":{},"up":[{}],"v":1,"wt":[{}]}`: {
			Dispatched: make([]journal.Dispatched, 1), Updated: make([]journal.Updated, 1), Waits: make([]journal.Wait, 1),
			Parent: &journal.Parent{}, Result: &journal.Result{},
			Response: &journal.Response{Pauses: make([]journal.Pause, 1), Of: &journal.PauseRef{}},
		},
		`{"cl":{"e":{}},"dl":{},"eff":{"k":"` + journal.Digest{1}.String() + `"},"fl":{},"hd":{},` + frame + `,"op":{},"v":1}`: {
			Close: &journal.Close{Error: &journal.Failure{}}, Trouble: &journal.Trouble{}, Flow: &journal.FlowRef{},
			Effect: &journal.Effect{Key: journal.Digest{1}}, Bound: &journal.Bound{}, Operator: &journal.Operator{},
		},
		// Numbers of a pair stand whatever they are.
		`{"el":[0,0],` + frame + `,"opn":[0,0],"sem":[0,0],"v":1}`: {
			Elements: &journal.Elements{}, Open: &journal.OpenMove{}, Semaphore: &journal.SemaphoreMove{},
		},
	} {
		e.Kind = journal.KindLeg2
		body := journal.Encode(&e)
		require.Equal(t, want, string(body))
		got, err := journal.Decode(body)
		require.NoError(t, err)
		require.Equal(t, &e, got)
	}
}

// TestResponsesRoundTrip: a response in the body of a dispatch row reads back
// whole, and is the same JSON that it is in an entry.
func TestResponsesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := responses().Draw(t, "response")
		body := journal.EncodeResponse(&r)
		got, err := journal.DecodeResponse(body)
		require.NoError(t, err)
		require.Equal(t, &r, got)
		again, err := canonical.Payload(body)
		require.NoError(t, err)
		require.Equal(t, string(body), string(again))
		entry := journal.Encode(&journal.Entry{Kind: journal.KindLeg2, Response: &r})
		require.Contains(t, string(entry), `"rs":`+string(body))
	})
}

func TestDecodeResponseRefuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]error{
		``: journal.ErrNotCanonical, `[]`: journal.ErrNotCanonical, `{"k":"terminal"`: journal.ErrNotCanonical,
		`{} `: journal.ErrNotCanonical, `{"k":"a","c":1}`: journal.ErrNotCanonical, `{"c":"1"}`: journal.ErrNotCanonical,
		`{"c":0}`: journal.ErrNotCanonical, `{"k":"\u0061"}`: journal.ErrNotCanonical, `{"k": "a"}`: journal.ErrNotCanonical,
		`{"x":1}`: journal.ErrUnknownField, `{"e":{"x":1}}`: journal.ErrUnknownField,
	} {
		got, err := journal.DecodeResponse([]byte(body))
		require.ErrorIs(t, err, want, body)
		require.Nil(t, got, body)
	}
}

// FuzzDecodeResponse: nothing panics, and what is read has one spelling.
func FuzzDecodeResponse(f *testing.F) {
	f.Add(journal.EncodeResponse(full().Response))
	f.Add([]byte(`{"by":"timer","c":200,"k":"terminal"}`))
	f.Add([]byte(`{"c":200,"k":"suspended","p":[{"f":"5","k":"sleep","n":"a","p":"1"}],"tn":1}`))
	f.Add([]byte(`{"c":200,"k":"wake","of":{"k":"child","n":"a","p":"1.0.2"}}`))
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
