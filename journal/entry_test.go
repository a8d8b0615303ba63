package journal_test

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// TestEveryFieldSurvives: the golden entry sets every field of Entry, and is read back as it
// was written (2.2).
func TestEveryFieldSurvives(t *testing.T) {
	t.Parallel()
	e := full()
	set, all := map[string]bool{}, map[string]bool{}
	fields(reflect.ValueOf(e).Elem(), "Entry", set, all)
	for f := range all {
		require.True(t, set[f], "the golden entry leaves %s unset", f)
	}
	got, err := journal.Decode(record(e))
	require.NoError(t, err)
	require.Equal(t, e, got)
	trusted, err := journal.DecodeTrusted(record(e))
	require.NoError(t, err)
	require.Equal(t, e, trusted)
	require.Equal(t, "before"+string(record(e).Body), string(journal.AppendEntry([]byte("before"), e)))
}

// fields collects the paths of all fields below v, and of those that are set in at least one
// place.
func fields(v reflect.Value, path string, set, all map[string]bool) {
	all[path] = true
	switch v.Kind() {
	case reflect.Pointer:
		set[path] = set[path] || !v.IsNil()
		if !v.IsNil() {
			fields(v.Elem(), path, set, all)
		}
	case reflect.Struct:
		set[path] = true
		for i := range v.NumField() {
			fields(v.Field(i), path+"."+v.Type().Field(i).Name, set, all)
		}
	case reflect.Slice:
		set[path] = set[path] || v.Len() > 0
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				fields(v.Index(i), path+"[]", set, all)
			}
		}
	default:
		set[path] = set[path] || !v.IsZero()
	}
}

// TestEntriesRoundTrip: Decode reads back what Encode wrote, and accepts it as the only
// spelling. The body is strict JSON around its payloads.
func TestEntriesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := entries().Draw(t, "entry")
		body := journal.Encode(e)
		got, err := journal.Decode(record(e))
		require.NoError(t, err)
		require.Equal(t, e, got)
		require.True(t, json.Valid(body))
		again, err := canonical.Payload(body)
		require.NoError(t, err)
		require.Equal(t, string(body), string(again))
	})
}

// wrap is a lawful body with members before and after its frame.
func wrap(before, after string) string {
	return `{` + before + `"as":"1"` + after + `,"v":3}`
}

var deep = strings.Repeat("[", 400) + strings.Repeat("]", 400)

// refusedBodies are almost lawful bodies.
var refusedBodies = []struct {
	name, body string
	want       error
}{
	{"nothing", ``, journal.ErrNotCanonical},
	{"no object", `[]`, journal.ErrNotCanonical},
	{"no version", `{"as":"1"}`, journal.ErrUnknownVersion},
	{"later version", `{"as":"1","v":4}`, journal.ErrUnknownVersion},
	{"the version before", `{"act":"a","job":"00000000-0000-8000-8000-000000000001","k":"leg1","v":1}`, journal.ErrUnknownVersion},
	{"no kind", `{"v":3}`, journal.ErrUnknownKind},
	{"unknown kind", `{"as":"3","v":3}`, journal.ErrUnknownKind},
	{"a kind in full letters", `{"as":"leg1","v":3}`, journal.ErrUnknownKind},
	{"unknown mark", wrap(``, `,"do":"z"`), journal.ErrUnknownField},
	{"unknown field", wrap(``, `,"u":1`), journal.ErrUnknownField},
	{"unknown field in place", wrap(``, `,"asa":1`), journal.ErrUnknownField},
	{"unknown field of a response", wrap(``, `,"b":{"x":1}`), journal.ErrUnknownField},
	{"unknown field of a failure", wrap(``, `,"b":{"e":{"x":1}}`), journal.ErrUnknownField},
	{"unknown field of a close", wrap(``, `,"c":{"x":1}`), journal.ErrUnknownField},
	{"unknown field of an effect", wrap(``, `,"e":{"x":1}`), journal.ErrUnknownField},
	{"unknown field of a row", wrap(``, `,"s":[{"x":1}]`), journal.ErrUnknownField},
	{"unknown field of an update", wrap(``, `,"up":[{"x":1}]`), journal.ErrUnknownField},
	{"unknown field of the writer", wrap(``, `,"by":{"x":"1"}`), journal.ErrUnknownField},
	{"unknown field of the operator", wrap(``, `,"op":{"x":"1"}`), journal.ErrUnknownField},
	{"unknown field of a bound head", wrap(``, `,"bd":{"x":1}`), journal.ErrUnknownField},
	{"unknown field of a result", wrap(``, `,"q":{"x":1}`), journal.ErrUnknownField},
	{"unknown field of a parent", wrap(``, `,"p":{"x":1}`), journal.ErrUnknownField},
	{"unknown field of a pause", wrap(``, `,"b":{"p":[{"x":1}]}`), journal.ErrUnknownField},
	{"unknown field of a named pause", wrap(``, `,"b":{"of":{"x":1}}`), journal.ErrUnknownField},
	{"a suspension's empty list of pauses", wrap(``, `,"b":{"p":[]}`), journal.ErrNotCanonical},
	{"a pause's payload of another spelling", wrap(``, `,"b":{"p":[{"in":1e2}]}`), journal.ErrNotCanonical},
	{"a pause's time as a number", wrap(``, `,"b":{"p":[{"f":5}]}`), journal.ErrNotCanonical},
	{"unknown field of a wait", `{"as":"1","v":3,"w":[{"x":1}]}`, journal.ErrUnknownField},
	{"unknown field of a flow", wrap(``, `,"f":{"x":1}`), journal.ErrUnknownField},
	{"keys out of order", `{"as":"1","a":"a","v":3}`, journal.ErrNotCanonical},
	{"key twice", wrap(``, `,"as":"1"`), journal.ErrNotCanonical},
	{"white space", wrap(``, ``) + "\n", journal.ErrNotCanonical},
	{"trailing data", wrap(``, ``) + `{}`, journal.ErrNotCanonical},
	{"cut short", strings.TrimSuffix(wrap(``, ``), `}`), journal.ErrNotCanonical},
	{"zero that is left out", wrap(`"ab":0,`, ``), journal.ErrNotCanonical},
	{"what follows, said all the same", wrap(``, `,"do":"ew","l":"001100000000000"`), journal.ErrNotCanonical},
	{"a space that is the first entry's to say", wrap(``, `,"sp":"shop"`), journal.ErrNotCanonical},
	{"zero in front", wrap(``, `,"o":01`), journal.ErrNotCanonical},
	{"fraction", wrap(``, `,"o":1.0`), journal.ErrNotCanonical},
	{"number beyond 2^53", wrap(``, `,"t":9007199254740992`), journal.ErrNotCanonical},
	{"number beyond int64", wrap(``, `,"t":9223372036854775808`), journal.ErrNotCanonical},
	{"big number not as string", wrap(``, `,"e":{"f":5}`), journal.ErrNotCanonical},
	{"other escape", wrap(`"a":"\u0061",`, ``), journal.ErrNotCanonical},
	{"raw control character", wrap("\"a\":\"\n\",", ``), journal.ErrNotCanonical},
	{"U+0000", wrap(`"a":"\u0000",`, ``), journal.ErrNotCanonical},
	{"half a surrogate", wrap(`"a":"\ud800",`, ``), journal.ErrNotCanonical},
	{"invalid UTF-8", wrap("\"a\":\"\xff\",", ``), journal.ErrNotCanonical},
	{"a short id", wrap(``, `,"g":"AAAAAAAAAAAAAAAAAAAAA"`), journal.ErrNotCanonical},
	{"an id in hexadecimal", wrap(``, `,"g":"0000000a-0000-8000-8000-000000000001"`), journal.ErrNotCanonical},
	{"an id of other letters", wrap(``, `,"g":"AAAAAAAAAAAAAAAAAAAAA+"`), journal.ErrNotCanonical},
	{"bits behind an id", wrap(``, `,"g":"AAAAAAAAAAAAAAAAAAAAAB"`), journal.ErrNotCanonical},
	{"half a sum", wrap(``, `,"el":[1,1,"AAAAAAAAAAA"]`), journal.ErrNotCanonical},
	{"short ledger", wrap(``, `,"l":"1"`), journal.ErrNotCanonical},
	{"the ledger of a folded Leg1 in full", wrap(``, `,"s":[{"l":"001100000000000"}]`), journal.ErrNotCanonical},
	{"another short ledger of a folded Leg1", wrap(``, `,"s":[{"l":12}]`), journal.ErrNotCanonical},
	{"long tuple", wrap(``, `,"el":[1,2,"",3]`), journal.ErrNotCanonical},
	{"short tuple", wrap(``, `,"el":[1]`), journal.ErrNotCanonical},
	{"another truth", wrap(``, `,"p":{"aw":2}`), journal.ErrNotCanonical},
	{"another truth of a response", wrap(``, `,"b":{"u":2}`), journal.ErrNotCanonical},
	{"a truth that is left out", wrap(``, `,"p":{"aw":0}`), journal.ErrNotCanonical},
	{"a result's payload of another spelling", wrap(``, `,"q":{"o":1e2}`), journal.ErrNotCanonical},
	{"payload of another spelling", wrap(``, `,"i":1e2`), journal.ErrNotCanonical},
	{"payload with keys out of order", wrap(``, `,"i":{"b":1,"a":2}`), journal.ErrNotCanonical},
	{"payload of crossed brackets", wrap(``, `,"i":[}`), journal.ErrNotCanonical},
	{"payload that nests too deeply", wrap(``, `,"i":`+deep), journal.ErrNotCanonical},
	{"empty payload", wrap(``, `,"i":`), journal.ErrNotCanonical},
	{"too large", wrap(``, `,"i":"`+strings.Repeat("x", journal.MaxEntryBytes)+`"`), journal.ErrNotCanonical},
}

// TestDecodeRefuses: a reader skips nothing that it does not know (V16), and accepts one
// spelling.
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range refusedBodies {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := journal.Decode(body(c.body))
			require.ErrorIs(t, err, c.want)
		})
	}
	_, err := journal.Decode(body(wrap(``, ``)))
	require.NoError(t, err, "the frame of the cases above is a lawful body")
}

// TestPayloadsOfEveryDepthAreAccepted: a payload that package canonical accepts can be read
// again at any place in an entry.
func TestPayloadsOfEveryDepthAreAccepted(t *testing.T) {
	t.Parallel()
	deep := []byte(strings.Repeat("[", canonical.MaxDepth) + strings.Repeat("]", canonical.MaxDepth))
	e := &journal.Entry{Kind: journal.KindLeg2, Response: &journal.Response{Error: &journal.Failure{Data: deep}}}
	got, err := journal.Decode(record(e))
	require.NoError(t, err)
	require.Equal(t, e, got)
}

// seeds are bodies for the fuzzers.
var seeds = []string{
	`{"a":"a","as":"1","v":3}`, `{"as":"c","i":{"a":[1,"\""]},"v":3}`,
	`{"as":"2","b":{"q":"AAAAAAAAAAAAAAAAAAAAAQ"},"do":"ewc","s":[{"a":"w","as":"leg1","l":1},{"t":"t"}],"se":1,"v":3,"w":[{"t":"t"}]}`,
}

func FuzzDecode(f *testing.F) {
	f.Add(journal.Encode(full()))
	f.Add(journal.Encode(&journal.Entry{Kind: journal.KindStale}))
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := journal.Record{Job: journal.JobID{1}, Seq: 2, Body: text}
		if len(text)%2 == 1 { // of both kinds of chain
			r.Chain = guid(3)
		}
		e, err := journal.Decode(r)
		if err != nil {
			require.Nil(t, e)
			return
		}
		require.Equal(t, string(text), string(journal.Encode(e)), "an accepted body has one spelling")
		require.True(t, json.Valid(text), "an accepted body is JSON")
		trusted, err := journal.DecodeTrusted(r)
		require.NoError(t, err)
		require.Equal(t, e, trusted)
	})
}

// TestGoldenChain pins bytes and hashes (J9): a change here breaks every journal ever written.
func TestGoldenChain(t *testing.T) {
	t.Parallel()
	e := full()
	body := journal.Encode(e)
	require.Equal(t, goldenBody, string(body))
	h0 := journal.Genesis(e.Space, e.Job, e.Generation, journal.MainChain)
	h1 := journal.Next(h0, body)
	h2 := journal.Next(h1, journal.Encode(&journal.Entry{Kind: journal.KindStale, Seq: 2}))
	require.Equal(t, goldenHashes, [3]string{h0.String(), h1.String(), h2.String()})
	effects := journal.Genesis(e.Space, e.Job, e.Generation, e.GUID)
	require.NotEqual(t, h0, effects, "each chain begins with a hash of its own (J8)")

	// The same by the formula of the rules, spelled out.
	manual := sha256.New()
	manual.Write([]byte("quipu-entry-v1\x00"))
	manual.Write(h0[:])
	manual.Write([]byte{0, 0, byte(len(body) >> 8), byte(len(body))})
	manual.Write(body)
	require.Equal(t, h1[:], manual.Sum(nil))
}
