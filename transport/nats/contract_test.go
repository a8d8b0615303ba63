package nats

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

func contract(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/wire.md")
	require.NoError(t, err)
	return string(text)
}

// T6: a consumer that a foreign worker makes by docs/wire.md is the same as that of a Go
// worker on the topic.
func TestT6ConsumerAsStated(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)```json consumer\n(.*?)```").FindStringSubmatch(contract(t))
	require.NotNil(t, block)
	d := json.NewDecoder(strings.NewReader(block[1]))
	d.DisallowUnknownFields()
	var stated jetstream.ConsumerConfig
	require.NoError(t, d.Decode(&stated))
	cfg, err := Config{Space: "shop", WorkAckWait: 30 * time.Second}.normalise() // as in a worker without a database
	require.NoError(t, err)
	require.Equal(t, (&Bus{cfg: cfg}).consumerConfig(transport.ToWork("payments.charge")), stated)
}

// T6, T7: subjects, streams, headers and the acknowledgement texts are those of
// docs/wire.md.
func TestT6NamesAsStated(t *testing.T) {
	t.Parallel()
	text := contract(t)
	b := &Bus{cfg: Config{Space: "SPACE", Prefix: DefaultPrefix}}
	stated := []string{
		b.streamName(transport.Work), b.streamName(transport.Lane), b.subject(transport.ToWork("TOPIC")),
		string(ackPayload), string(progressPayload), "+TERM",
	}
	transport.EncodeHeader(&transport.Message{Header: transport.Header{
		GUID: [16]byte{1}, OriginSession: [16]byte{1}, PublishedAt: 1, Traceparent: "00",
	}}, func(name, _ string) { stated = append(stated, name) })
	require.Len(t, stated, 6+10)
	stated = append(stated, strings.TrimRight(b.endedSubject([16]byte{}), "0")+"JOB")
	for _, word := range stated {
		require.Contains(t, text, "`"+word, word)
	}
	require.Equal(t, `-NAK {"delay": 10000000}`, string(nakPayload(0)))
	require.Contains(t, text, "`-NAK {\"delay\": NANOSECONDS}`, at least "+strings.Replace(transport.MinNakDelay.String(), "ms", " ms", 1))
	require.Contains(t, text, "3 s unless configured")
	require.Equal(t, 3*time.Second, defaultWorkAckWait)
}
