package collation_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// segments lists the segments of an address; nil if there are too many to look at.
func segments(s string) (out []int) {
	for part := range strings.SplitSeq(s[1:], ",") {
		value, count, repeated := strings.Cut(part, "^")
		v, _ := strconv.Atoi(value) // the address was accepted
		n := 1
		if repeated {
			n, _ = strconv.Atoi(count)
		}
		if len(out)+n > 300 {
			return nil
		}
		out = append(out, slices.Repeat([]int{v}, n)...)
	}
	return out
}

// FuzzDAD: an address has one spelling, that of its list of segments (1.9).
func FuzzDAD(f *testing.F) {
	for _, seed := range []string{",0", ",0^57,3,0", ",0,0,0", ",1^4", ",99999999^100000", ",0^3", ",00", ",0^4,0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := collation.ParseDAD(s)
		if err != nil {
			require.ErrorIs(t, err, collation.ErrAddress)
			require.Empty(t, d)
			require.Less(t, len(err.Error()), 1000)
			return
		}
		require.Equal(t, s, string(d))
		require.LessOrEqual(t, d.Depth(), collation.MaxSegments)
		if list := segments(s); list != nil {
			require.Equal(t, s, spell(list))
			require.Equal(t, len(list), d.Depth())
		}
	})
}

// FuzzSignalOf: the row of a signal is read as a signal or is an error. A signal that is
// written again reads the same.
func FuzzSignalOf(f *testing.F) {
	row, err := (&collation.Signal{Topic: "paid", Key: "o-1", Code: 200, Payload: []byte(`{"a":1}`), Keep: 5, Sent: 7}).Row("s")
	require.NoError(f, err)
	f.Add(row.Body)
	f.Fuzz(func(t *testing.T, body []byte) {
		guid := journal.GUID{1, 6: 0x80}
		s, err := collation.SignalOf(&collation.Row{GUID: guid, Body: body})
		if err != nil {
			require.ErrorIs(t, err, collation.ErrSignal)
			require.ErrorContains(t, err, guid.String(), "the error names the row")
			return
		}
		require.Equal(t, guid, s.GUID)
		row, err := s.Row("s")
		require.NoError(t, err)
		require.Equal(t, journal.MessageSignal, row.Kind)
		again, err := collation.SignalOf(&row)
		require.NoError(t, err)
		once, err := again.Row("s")
		require.NoError(t, err)
		require.Equal(t, row, once)
	})
}

// FuzzOrder: the order of a child is read, or is an error that names the row. An order that is
// written again reads the same.
func FuzzOrder(f *testing.F) {
	o, err := json.Marshal(collation.StartOrder{
		Flow: "invoice", Version: "2", Key: "o-1", Input: []byte(`{"a":1}`),
		Parent: journal.Parent{Space: "s", Job: journal.JobID{1}, Activity: "bill", DAD: ",0,0", Leg1: journal.GUID{2}, Turn: 1},
	})
	require.NoError(f, err)
	f.Add(o)
	f.Fuzz(func(t *testing.T, body []byte) {
		guid := journal.GUID{3, 6: 0x80}
		o, err := (&collation.Row{GUID: guid, Body: body}).Order()
		if err != nil {
			require.ErrorContains(t, err, guid.String())
			return
		}
		text, err := json.Marshal(o)
		require.NoError(t, err)
		again, err := (&collation.Row{GUID: guid, Body: text}).Order()
		require.NoError(t, err)
		once, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(text), string(once))
		// Its refusal is a message that can be read.
		row := o.Refusal(journal.JobID{9}, collation.CodeNotFound, "unknown", "no such flow", 1, collation.Mode{})
		_, err = journal.DecodeResponse(row.Body)
		require.NoError(t, err)
	})
}

// FuzzErrorJSON: an error is canonical as expressions see it, whatever its texts and data are
// (E11).
func FuzzErrorJSON(f *testing.F) {
	f.Add(402, "business", "no \"money\"\n", []byte(`{"a":[1.50]}`))
	f.Add(500, "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, code int, class, message string, data []byte) {
		failure := &journal.Failure{
			Class:   strings.ToValidUTF8(strings.ReplaceAll(class, "\x00", ""), ""),
			Message: strings.ToValidUTF8(strings.ReplaceAll(message, "\x00", ""), ""),
		}
		if data, err := canonical.Payload(data); err == nil &&
			bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) < canonical.MaxDepth {
			failure.Data = data
		}
		text := collation.ErrorJSON(code, failure)
		got, err := canonical.Payload(text)
		require.NoError(t, err)
		require.Equal(t, string(text), string(got))
		var seen struct {
			Code           int
			Class, Message string
			Data           json.RawMessage
		}
		require.NoError(t, json.Unmarshal(text, &seen))
		require.Equal(t, []any{code, failure.Class, failure.Message, string(failure.Data)},
			[]any{seen.Code, seen.Class, seen.Message, string(seen.Data)})
	})
}
