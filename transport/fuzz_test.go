package transport_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// FuzzTopic: an accepted topic is one subject, not a pattern of others; the error names a
// refused topic, but does not repeat it at length (T5).
func FuzzTopic(f *testing.F) {
	for _, seed := range []string{"payments.charge", "a", "a..b", ".a", "a.", "a*", ">", "ä", "a b", "a\n", strings.Repeat("t", transport.MaxTopic+1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, topic string) {
		err := transport.ValidateTopic(topic)
		require.Equal(t, err, transport.ToWork(topic).Validate())
		if err != nil {
			require.ErrorIs(t, err, transport.ErrInvalid)
			require.Less(t, len(err.Error()), 2000)
			return
		}
		require.LessOrEqual(t, len(topic), transport.MaxTopic)
		require.NotContains(t, topic, "..")
		require.False(t, strings.ContainsAny(topic, "*> \t\r\n\x00="), topic)
		require.Equal(t, "work."+topic, transport.ToWork(topic).String())
	})
}

// FuzzMessage: a valid message is read as it was sent (T7).
func FuzzMessage(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), 1, 2, int64(3), []byte("fedcba9876543210"), int64(4), int64(5), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", []byte("{}"), 300)
	f.Add([]byte{1}, -1, 0, int64(0), []byte{}, int64(7), int64(0), "a\r\nb", []byte{}, 0)
	f.Fuzz(func(t *testing.T, guid []byte, publication, turn int, epoch int64, session []byte, seq, at int64,
		trace string, body []byte, limit int,
	) {
		m := transport.Message{To: transport.ToStart(), Body: body, Header: transport.Header{
			Publication: publication, Turn: turn, Epoch: epoch, OriginSeq: seq, PublishedAt: at, Traceparent: trace,
		}}
		copy(m.Header.GUID[:], guid)
		copy(m.Header.OriginSession[:], session)
		if err := m.Validate(limit); err != nil {
			return
		}
		sent := wired(&m)
		for name, value := range sent {
			require.False(t, strings.ContainsAny(value, "\r\n"), "%s: a value is one line", name)
		}
		if limit > 0 {
			require.LessOrEqual(t, transport.HeaderSize(&m)+len(body), limit)
		}
		got, err := transport.Decode(m.To, func(name string) string { return sent[name] }, body, nil)
		if publication > 1<<31-1 || turn > 1<<31-1 {
			require.ErrorIs(t, err, transport.ErrMalformed)
			return
		}
		require.NoError(t, err)
		want := m.Header
		if want.OriginSession == [16]byte{} {
			want.OriginSeq = 0 // without a session there is no number
		}
		require.Equal(t, want, got.Header)
		require.Equal(t, body, got.Body)
	})
}
