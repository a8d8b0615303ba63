package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

type delivered struct {
	acked
	msg transport.Message
}

func (d *delivered) Message() *transport.Message { return &d.msg }

// FuzzDecode: a delivery is a message of the protocol, or poison with an error that says so
// (T3, C10). The GUID of a message with a row of its own is the row's (1.4). A message that is
// addressed to no activity names none.
func FuzzDecode(f *testing.F) {
	id := journal.GUID{7, 6: 0x80, 8: 0x80}
	read := func(body []byte, publication int) (*message, error) {
		return decode(&delivered{msg: transport.Message{
			Header: transport.Header{GUID: id, Publication: publication},
			Body:   body,
		}})
	}
	terminal := &wire.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(`1`)}
	seed := func(good bool, h wire.Hint) {
		h.Job, h.Row = id.String(), id.String()
		_, err := read(wire.Encode(&h), 1)
		require.Equal(f, good, err == nil, "%+v: %v", h, err)
		f.Add(wire.Encode(&h), 1)
	}
	for _, kind := range []journal.MessageKind{
		journal.MessageStart, journal.MessageLeg1, journal.MessageAnswer, journal.MessageWakeUp,
		journal.MessageOutcome, journal.MessageCycle,
	} {
		seed(true, wire.Hint{Kind: kind, Activity: "a", DAD: ",0,1"})
	}
	seed(true, wire.Hint{Kind: journal.MessageStart, DAD: ",0", Flow: "order", Version: "1"})
	seed(true, wire.Hint{Kind: journal.MessageAnswer, Activity: "charge", DAD: ",0^6", Turn: 2})
	seed(true, wire.Hint{Kind: journal.MessageResponse, Activity: "charge", DAD: ",0,0", Turn: 1, Response: terminal})
	for _, kind := range []journal.MessageKind{journal.MessageSignal, journal.MessageInterrupt} {
		seed(true, wire.Hint{Kind: kind, DAD: ",0"})
		seed(false, wire.Hint{Kind: kind, Activity: "a", DAD: ",0"})
		seed(false, wire.Hint{Kind: kind, DAD: ",0,0"})
	}
	for _, kind := range []journal.MessageKind{
		journal.MessageReceipt, journal.MessageRequest, journal.MessageResponse, "", "nonsense",
	} {
		seed(false, wire.Hint{Kind: kind, Activity: "a", DAD: ",0"})
	}
	f.Fuzz(func(t *testing.T, body []byte, publication int) {
		it, err := read(body, publication)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		m := &it.msg
		_, err = collation.ParseDAD(string(m.DAD))
		require.NoError(t, err)
		require.Equal(t, m.Kind == journal.MessageResponse, m.Response != nil)
		if m.Kind != journal.MessageAnswer && m.Kind != journal.MessageResponse {
			require.Equal(t, m.Row, m.GUID, "1.4")
		}
		switch w := it.wanted(NewFlows(nil), collation.Mode{}); {
		case m.Kind == journal.MessageSignal:
			require.Equal(t, store.Want{Box: m.Job, Signal: m.GUID}, w)
		case m.Activity == "":
			require.Empty(t, w.Instances)
			require.Equal(t, m.GUID, w.Receipt)
		default:
			require.Equal(t, []collation.InstanceKey{{Activity: m.Activity, DAD: m.DAD}}, w.Instances)
		}
		if m.Response != nil {
			_, err = journal.DecodeResponse(journal.EncodeResponse(m.Response))
			require.NoError(t, err, "it can be recorded")
		}
	})
}

// FuzzRowBody: the response in a row is read, or is an error. A row of another kind is not read
// (T1).
func FuzzRowBody(f *testing.F) {
	f.Add("answer", journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(`{"n":1}`)}))
	f.Add("wakeup", journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: 200, By: journal.BySignal}))
	f.Add("leg1", []byte(`{`))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		it := &message{msg: collation.Message{Kind: journal.MessageKind(kind)}}
		require.NoError(t, it.read(&collation.Row{Kind: "another " + journal.MessageKind(kind), Body: body}))
		require.Nil(t, it.msg.Response)
		if err := it.read(&collation.Row{Kind: it.msg.Kind, Body: body}); err != nil || it.msg.Response == nil {
			return
		}
		_, err := journal.DecodeResponse(journal.EncodeResponse(it.msg.Response))
		require.NoError(t, err, "it can be recorded")
	})
}

// FuzzCheckStart: an accepted start keeps the limits, and its key fits on one line (E16).
func FuzzCheckStart(f *testing.F) {
	var flows []*flow.Flow
	for _, identity := range []string{"caller", "strict"} {
		parsed, err := flow.Parse("f.json", fmt.Appendf(nil, `{"flow":"a","version":"1","identity":%q,"activities":{"s":{"type":"trigger"}},"input":{"type":"object","required":["n"]}}`, identity))
		require.NoError(f, err)
		flows = append(flows, parsed)
	}
	f.Add("order-42", []byte(`{"n":1}`))
	f.Add("", []byte(`{"n":1}`))
	f.Add("a\nb", []byte(`{}`))
	f.Fuzz(func(t *testing.T, key string, input []byte) {
		for _, x := range flows {
			got, err := CheckStart(x, key, input, (&Config{}).KeptKey, nil)
			if err != nil {
				require.True(t, errors.Is(err, ErrInput) || errors.Is(err, ErrKey), "%v", err)
				continue
			}
			require.True(t, got != "" && len(got) <= MaxKey && printable(got))
			if key != "" {
				require.Equal(t, key, got)
			}
			require.NoError(t, x.CheckInput(input, flow.NewBudget(nil)))
		}
	})
}

// TestKeysAreText: a key can be printed, and listed on one line.
func TestKeysAreText(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"order-42", "ключ 🔑", " a ", "a/../b"} {
		require.True(t, printable(key), "%q", key)
	}
	for _, key := range []string{"a\nb", "a\x00", "\x7f", "\u009b31m", "a\xff"} {
		require.False(t, printable(key), "%q", key)
	}
}
