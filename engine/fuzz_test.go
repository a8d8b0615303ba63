package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/wire"
)

// FuzzDecode: a delivery is a message of the protocol, or poison with an error that says so
// (T3, C10). A decoded message names a row, an address and, where it must, a response.
func FuzzDecode(f *testing.F) {
	id := journal.GUID{7, 6: 0x80, 8: 0x80}
	for _, h := range []wire.Hint{
		{Kind: journal.MessageStart, DAD: ",0", Flow: "order", Version: "1"},
		{Kind: journal.MessageLeg1, Activity: "charge", DAD: ",0,0"},
		{Kind: journal.MessageAnswer, Activity: "charge", DAD: ",0,0^5", Turn: 2},
		{Kind: journal.MessageInterrupt, DAD: ",0"},
		{Kind: journal.MessageResponse, Activity: "charge", DAD: ",0,0", Turn: 1, Response: &wire.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(`1`)}},
		{Kind: journal.MessageRequest, DAD: ",0"},
	} {
		h.Job, h.Row = id.String(), id.String()
		f.Add(wire.Encode(&h), 1)
	}
	f.Fuzz(func(t *testing.T, body []byte, publication int) {
		it, err := decode(&delivered{msg: transport.Message{Header: transport.Header{GUID: id, Publication: publication}, Body: body}})
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
		require.LessOrEqual(t, len(it.want(NewFlows(nil), collation.Mode{}).Instances), 1)
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
		it := &item{msg: collation.Message{Kind: journal.MessageKind(kind)}}
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
			got, err := CheckStart(x, key, input, (&Config{}).KeptKey)
			if err != nil {
				require.True(t, errors.Is(err, ErrInput) || errors.Is(err, ErrKey), "%v", err)
				continue
			}
			require.True(t, got != "" && len(got) <= MaxKey && printable(got))
			if key != "" {
				require.Equal(t, key, got)
			}
			require.NoError(t, x.CheckInput(input))
		}
	})
}
