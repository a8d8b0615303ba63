package transport_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/transport"
)

// T7, F17: a message is read as it was sent, and its headers are as large as HeaderSize says. If
// any bit of a header's name or value or of the body flips, it is refused or unchanged. The message
// id, which only the bus reads, may differ.
func TestF17FlippedBit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := transport.Message{To: transport.ToStart(), Header: headerOf(t), Body: []byte(rapid.String().Draw(t, "body"))}
		require.NoError(t, m.Validate(0))
		headers, body := wired(&m), slices.Clone(m.Body)
		require.Equal(t, m.ID(), headers[transport.HeaderMsgID])
		size := len("NATS/1.0\r\n\r\n")
		for name, value := range headers {
			size += len(name + ": " + value + "\r\n")
		}
		require.LessOrEqual(t, size, transport.HeaderSize(&m))
		whole, err := delivered(m.To, headers, body, nil)
		require.NoError(t, err)
		require.Equal(t, m.Header, whole.Header)
		names := slices.Sorted(maps.Keys(headers))
		at := rapid.IntRange(0, len(names)).Draw(t, "header")
		flip := func(s string, label string) string {
			b := []byte(s)
			n := rapid.IntRange(0, 8*len(b)-1).Draw(t, label)
			b[n/8] ^= 1 << (n % 8)
			return string(b)
		}
		switch {
		case at < len(names) && rapid.Bool().Draw(t, "name"):
			value := headers[names[at]]
			delete(headers, names[at])
			headers[flip(names[at], "bit")] = value
		case at < len(names):
			headers[names[at]] = flip(headers[names[at]], "bit")
		case len(body) > 0:
			body = []byte(flip(string(body), "bit"))
		}
		got, err := delivered(m.To, headers, body, nil)
		if err == nil {
			require.Equal(t, m.Header, got.Header)
			require.Equal(t, string(m.Body), string(got.Body))
			return
		}
		require.ErrorIs(t, err, transport.ErrMalformed)
		require.Zero(t, got.Header, "nothing of it is believed")
		require.Equal(t, string(body), string(got.Body), "for the dead letter")
	})
}

// F18, T6: a message without a sum is accepted: from an older build, or from a worker in
// another language.
func TestF18NoSum(t *testing.T) {
	t.Parallel()
	m, err := delivered(transport.ToStart(), map[string]string{transport.HeaderGUID: strings.Repeat("0a", 16)}, []byte("body"),
		nil)
	require.NoError(t, err)
	require.Equal(t, "body", string(m.Body))
	// Older and newer builds must agree on this sum.
	golden := wired(&transport.Message{Header: transport.Header{GUID: [16]byte{15: 1}, Turn: 1}, Body: []byte("{}")})
	require.Equal(t, "8132794d", golden[transport.HeaderSum])
}
