package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

func examples() []any {
	hint := Hint{Kind: "answer", Job: "j", Row: "r", Activity: "a", DAD: ",0", Turn: 2, Flow: "f", Version: "1"}
	response := Response{Kind: "terminal", Code: 200, Output: json.RawMessage(`{"a":[1,"x\"}",{"b":null}]}`)}
	failed := Response{
		Kind: "failed", Code: 503, RetryAfterMS: -5, Undone: true, Ref: "00", BeganUS: 6, RanUS: 7,
		Error: &Failure{Class: "x", Message: "no", Data: json.RawMessage(`1.5`), Stack: "s"},
	}
	answered := hint
	answered.Response = &failed
	return []any{
		&hint, &answered, &response, &failed,
		&Request{
			Space: "s", Job: "j", Key: "k", Generation: 1 << 60, Flow: "f", Version: "1", Activity: "a", DAD: ",0", Element: -1,
			Topic: "t", Request: "r", Turn: 1, Attempt: 2, Attempts: 3, Fence: 4, TimeoutMS: 5, Input: json.RawMessage(`"x"`),
			Trace: "t",
		},
		&Request{},
		SuspendedUntil([]Pause{
			{Kind: journal.PauseSleep, Name: "n", Position: "p", For: 7},
			{Kind: journal.PauseChild, Name: "m", Position: "q", Flow: "f", Version: "1", Input: json.RawMessage(`{}`)},
		}),
	}
}

// spellings are other spellings of a message that Encode wrote.
func spellings(t *testing.T, b []byte) map[string][]byte {
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, b, "", "\t"))
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(b, &members))
	sorted, err := json.Marshal(members)
	require.NoError(t, err)
	return map[string][]byte{
		"ours": b, "with space": append(indented.Bytes(), '\n'), "sorted": sorted,
		"with unknown members": append([]byte(`{"unknown":{"kind":1},"Kind":"x",`), b[1:]...),
		"with escapes":         bytes.ReplaceAll(b, []byte(`"kind"`), []byte(`"\u006bind"`)),
	}
}

// T6: a message means the same in every spelling.
func TestDecodeReadsEverySpelling(t *testing.T) {
	t.Parallel()
	for _, v := range examples() {
		for name, b := range spellings(t, Encode(v)) {
			var got any
			var err error
			switch v.(type) {
			case *Hint:
				got, err = Decode[Hint](b)
			case *Request:
				got, err = Decode[Request](b)
			case *Response:
				got, err = Decode[Response](b)
			}
			require.NoError(t, err, "%s: %s", name, b)
			require.Equal(t, v, got, "%s: %s", name, b)
		}
	}
}

// Other odd messages are in testdata/messages.txt.
func TestDecodeOfOddMessages(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", canonical.MaxDepth) + strings.Repeat("]", canonical.MaxDepth)
	got, err := Decode[Hint]([]byte(`{"response":{"output":` + deep + `}}`))
	require.NoError(t, err, "the depth of a payload is its own")
	require.Equal(t, deep, string(got.Response.Output))
	_, err = Decode[Hint]([]byte(`{"response":{"output":[` + deep + `]}}`))
	require.ErrorContains(t, err, "nested deeper than 200")
	got, err = Decode[Hint]([]byte("{\"job\":\"a\xffb\"}"))
	require.NoError(t, err)
	require.Equal(t, &Hint{Job: "a\uFFFDb"}, got)
}

// FuzzQuick: Decode reads what encoding/json reads, with canonical payloads, and what is written again
// says the same (T6).
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

func compare[T Hint | Request | Response](t *testing.T, b []byte) {
	got, err := Decode[T](b)
	if err != nil {
		require.ErrorIs(t, err, ErrMalformed)
		return
	}
	again, err := Decode[T](Encode(got))
	require.NoError(t, err)
	require.Equal(t, string(Encode(got)), string(Encode(again)))
	var all any
	require.NoError(t, json.Unmarshal(b, &all))
	if folds(all) {
		return // encoding/json accepts Kind for kind
	}
	want := new(T)
	require.NoError(t, json.Unmarshal(b, want))
	a, err := canonical.Payload(Encode(want))
	if err != nil {
		return // too deep because of what surrounds the payload
	}
	same, err := canonical.Payload(Encode(got))
	require.NoError(t, err)
	require.Equal(t, string(a), string(same))
}

// folds says that a key contains characters that our names do not have.
func folds(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") != "" || folds(value) {
				return true
			}
		}
	case []any:
		for _, value := range v {
			if folds(value) {
				return true
			}
		}
	}
	return false
}
