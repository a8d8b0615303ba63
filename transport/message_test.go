package transport_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/transport"
)

func TestMessageID_T2(t *testing.T) {
	t.Parallel()
	m := transport.Message{Header: transport.Header{GUID: [16]byte{0: 0x01, 15: 0xff}, Publication: 3, Epoch: 12}}
	require.Equal(t, "010000000000000000000000000000ff.12.3", m.ID())
	again := m
	again.Header.Publication++
	require.NotEqual(t, m.ID(), again.ID(), "L7: one publication does not suppress the other")
}

func TestDestination(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]transport.Destination{
		"lane.0": transport.ToLane(0), "lane.15": transport.ToLane(15), "start": transport.ToStart(),
		"work.payments.charge": transport.ToWork("payments.charge"),
	} {
		require.Equal(t, want, d.String())
		require.NoError(t, d.Validate())
	}
	for _, d := range []transport.Destination{
		{},
		{Kind: 9},
		transport.ToLane(-1),
		transport.ToLane(transport.MaxLanes),
		{Kind: transport.Start, Topic: "x"},
		{Kind: transport.Work, Topic: "a", Lane: 1},
		transport.ToWork(""),
		transport.ToWork("a..b"),
		transport.ToWork("a.*"),
		transport.ToWork("a.>"),
		transport.ToWork("a b"),
		transport.ToWork("a=b"),
		transport.ToWork("größe"),
		transport.ToWork(strings.Repeat("a", transport.MaxTopic+1)),
	} {
		require.ErrorIs(t, d.Validate(), transport.ErrInvalid, "%+v", d)
	}
}

func headerOf(t *rapid.T) transport.Header {
	id := rapid.Custom(func(t *rapid.T) (id [16]byte) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		return id
	})
	h := transport.Header{
		GUID:        id.Filter(func(id [16]byte) bool { return id != [16]byte{} }).Draw(t, "guid"),
		Publication: rapid.IntRange(0, 1<<31-1).Draw(t, "publication"),
		Turn:        rapid.IntRange(0, 1<<31-1).Draw(t, "turn"),
		Epoch:       rapid.Int64Min(0).Draw(t, "epoch"),
		PublishedAt: rapid.Int64Min(0).Draw(t, "published"),
		Traceparent: rapid.StringMatching(`(00-[0-9a-f]{32}-[0-9a-f]{16}-0[01])?`).Draw(t, "traceparent"),
	}
	if h.OriginSession = id.Draw(t, "session"); h.OriginSession != [16]byte{} {
		h.OriginSeq = rapid.Int64Min(0).Draw(t, "seq")
	}
	return h
}

func TestDecodeHeaderRefuses_T3(t *testing.T) {
	t.Parallel()
	good := map[string]string{transport.HeaderGUID: strings.Repeat("0a", 16)}
	for name, values := range map[string][]string{
		transport.HeaderGUID:          {"", "00", strings.Repeat("0A", 16), strings.Repeat("00", 16), strings.Repeat("zz", 16)},
		transport.HeaderPublication:   {"-1", "+1", "01", "1.0", "x", "2147483648"},
		transport.HeaderTurn:          {" 1", "1 "},
		transport.HeaderEpoch:         {"9223372036854775808", "0x1"},
		transport.HeaderOriginSession: {"1", strings.Repeat("00", 16)},
		transport.HeaderOriginSeq:     {"-5"},
		transport.HeaderPublishedAt:   {"yesterday"},
		transport.HeaderTraceparent:   {strings.Repeat("0", transport.MaxTraceparent+1)},
	} {
		for _, value := range values {
			_, err := transport.DecodeHeader(func(asked string) string {
				if asked == name {
					return value
				}
				return good[asked]
			})
			require.ErrorIs(t, err, transport.ErrMalformed, "%s: %q", name, value)
			require.ErrorContains(t, err, name)
			require.Less(t, len(err.Error()), 300, "a foreign value is not repeated at length")
		}
	}
}

// FuzzDecodeHeader: an accepted header has one spelling (6.4, 1).
func FuzzDecodeHeader(f *testing.F) {
	f.Add(strings.Repeat("0a", 16), "1", "2", "3", strings.Repeat("0b", 16), "4", "5", "00-1")
	f.Add("", "", "", "", "", "", "", "")
	names := []string{
		transport.HeaderGUID, transport.HeaderPublication, transport.HeaderTurn, transport.HeaderEpoch,
		transport.HeaderOriginSession, transport.HeaderOriginSeq, transport.HeaderPublishedAt,
		transport.HeaderTraceparent,
	}
	f.Fuzz(func(t *testing.T, guid, publication, turn, epoch, session, seq, at, trace string) {
		wire := map[string]string{}
		for i, value := range []string{guid, publication, turn, epoch, session, seq, at, trace} {
			wire[names[i]] = value
		}
		h, err := transport.DecodeHeader(func(name string) string { return wire[name] })
		if err != nil {
			require.ErrorIs(t, err, transport.ErrMalformed)
			require.Zero(t, h)
			return
		}
		for name, value := range wired(&transport.Message{Header: h}) {
			if sent := wire[name]; sent != "" {
				require.Equal(t, sent, value, name)
			}
		}
	})
}
