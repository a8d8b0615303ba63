package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/wire"
)

type delivered struct {
	acked
	msg transport.Message
}

func (d *delivered) Message() *transport.Message { return &d.msg }

// 1.4: the GUID of a message with a row of its own is the row's. A message that is addressed to
// no activity names none.
func TestDecodeEveryKind(t *testing.T) {
	t.Parallel()
	guid := journal.GUID{7, 6: 0x80, 8: 0x80}
	hint := func(kind journal.MessageKind, activity, dad string) *delivered {
		h := wire.Hint{Kind: kind, Job: guid.String(), Row: guid.String(), Activity: activity, DAD: dad}
		return &delivered{msg: transport.Message{Header: transport.Header{GUID: guid, Publication: 1}, Body: wire.Encode(&h)}}
	}
	for _, kind := range []journal.MessageKind{
		journal.MessageStart, journal.MessageLeg1, journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle,
	} {
		it, err := decode(hint(kind, "a", ",0,1"))
		require.NoError(t, err, kind)
		require.Equal(t, guid, it.msg.GUID)
		require.Equal(t, []collation.InstanceKey{{Activity: "a", DAD: ",0,1"}}, it.want(NewFlows(nil), collation.Mode{}).Instances)
	}
	for _, kind := range []journal.MessageKind{journal.MessageSignal, journal.MessageInterrupt} {
		it, err := decode(hint(kind, "", ",0"))
		require.NoError(t, err, kind)
		require.Equal(t, guid, it.msg.GUID)
		w := it.want(NewFlows(nil), collation.Mode{})
		if kind == journal.MessageSignal {
			require.Equal(t, store.Want{Box: it.msg.Job, Signal: guid}, w)
		} else {
			require.Empty(t, w.Instances)
			require.Equal(t, guid, w.Receipt)
		}
		_, err = decode(hint(kind, "a", ",0"))
		require.ErrorIs(t, err, wire.ErrMalformed)
		_, err = decode(hint(kind, "", ",0,0"))
		require.ErrorIs(t, err, wire.ErrMalformed)
	}
	for _, kind := range []journal.MessageKind{journal.MessageReceipt, journal.MessageRequest, journal.MessageResponse, "", "nonsense"} {
		_, err := decode(hint(kind, "a", ",0"))
		require.ErrorIs(t, err, wire.ErrMalformed, kind)
	}
}
