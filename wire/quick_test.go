package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

func examples() []any {
	hint := Hint{Kind: "answer", Job: "j", Row: "r", Activity: "a", DAD: ",0", Turn: 2, Flow: "f", Version: "1"}
	response := Response{Kind: "terminal", Code: 200, Output: json.RawMessage(`{"a":[1,"x\"}",{"b":null}]}`)}
	failed := Response{
		Kind: "failed", Code: 503, RetryAfterMS: -5, Undone: true, Ref: "00",
		Error: &Failure{Class: "x", Message: "no", Data: json.RawMessage(`1.5`), Stack: "s"},
	}
	answered := hint
	answered.Response = &failed
	return []any{
		&hint, &answered, &response, &failed,
		&Request{
			Space: "s", Job: "j", Key: "k", Generation: 1 << 60, Flow: "f", Version: "1", Activity: "a", DAD: ",0", Element: -1,
			Topic: "t", Request: "r", Turn: 1, Try: 2, Attempts: 3, Fence: 4, TimeoutMS: 5, Input: json.RawMessage(`"x"`), Trace: "t",
		},
		&Request{},
		SuspendedUntil([]Pause{
			{Kind: journal.PauseSleep, Name: "n", Position: "p", For: 7},
			{Kind: journal.PauseChild, Name: "m", Position: "q", Flow: "f", Version: "1", Input: json.RawMessage(`{}`)},
		}),
	}
}

// What Encode writes is read without encoding/json, and comes back as it was.
func TestQuickReadsWhatEncodeWrites(t *testing.T) {
	t.Parallel()
	for _, v := range examples() {
		b := Encode(v)
		switch v := v.(type) {
		case *Hint:
			same(t, v, b, true)
		case *Request:
			same(t, v, b, true)
		case *Response:
			same(t, v, b, true)
		}
	}
}

// same holds a quick reading to v, which encoding/json agrees with.
func same[T any](t *testing.T, v *T, b []byte, must bool) {
	t.Helper()
	got := new(T)
	if !quickly(b, got) {
		require.False(t, must, "gives up on %s", b)
		return
	}
	require.Equal(t, v, got, "of %s", b)
}

// FuzzQuick: what is read quickly is what encoding/json reads; anything else is left
// to it.
func FuzzQuick(f *testing.F) {
	for _, v := range examples() {
		b := Encode(v)
		f.Add(b)
		f.Add(bytes.ReplaceAll(b, []byte(":"), []byte(": ")))
		f.Add(bytes.ReplaceAll(b, []byte(`"kind"`), []byte(`"Kind"`)))
		f.Add(append(bytes.TrimSuffix(b, []byte("}")), `,"kind":"x","unknown":1}`...))
	}
	for _, s := range []string{
		`{}`, `null`, `{"kind":null}`, `{"code":01}`, `{"code":-0}`, `{"code":1e2}`, `{"output":null}`, `{"output": {} }`,
		`{"output":{}} `, `{"output":[}]}`, `{"kind":"é"}`, `{"kind":"\u0041"}`, `{"turn":9223372036854775808}`, `{"kind":"a",}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		compare[Hint](t, b)
		compare[Request](t, b)
		compare[Response](t, b)
	})
}

func compare[T any](t *testing.T, b []byte) {
	want := new(T)
	if err := json.Unmarshal(b, want); err != nil {
		require.False(t, quickly(b, new(T)), "%v: %s", err, b)
		return
	}
	same(t, want, b, false)
}
