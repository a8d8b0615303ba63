package nats

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

func contract(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/wire.md")
	require.NoError(t, err)
	return string(text)
}

// S4: what an engine answers to a worker that asks for its consumer is as docs/wire.md has it.
func TestS4AnswerAsStated(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)```json consumer\n(.*?)```").FindStringSubmatch(contract(t))
	require.NotNil(t, block)
	d := json.NewDecoder(strings.NewReader(block[1]))
	d.DisallowUnknownFields()
	var stated asked
	require.NoError(t, d.Decode(&stated))
	require.Equal(t, asked{AckWait: defaultWorkAckWait}, stated)
	require.Contains(t, contract(t), "`error`")
}

// S4: the rights of a worker are those that docs/wire.md names.
func TestS4RightsAsStated(t *testing.T) {
	t.Parallel()
	_, section, ok := strings.Cut(contract(t), "\n## What it may do on NATS\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	publish, subscribe, ok := strings.Cut(section, "It may subscribe")
	require.True(t, ok)
	subjects := func(text string) (out []string) {
		for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(text, -1) {
			if strings.ContainsAny(m[1], "$*>") || strings.HasPrefix(m[1], "quipu.") {
				out = append(out, m[1])
			}
		}
		return out
	}
	r, err := RightsOf(Config{Space: "shop"}, Worker, []string{"payments.charge"})
	require.NoError(t, err)
	require.ElementsMatch(t, r.Publish, subjects(publish))
	require.ElementsMatch(t, r.Subscribe, subjects(subscribe))
}

// T6, T7: subjects, streams, headers and the acknowledgement texts are those of
// docs/wire.md.
func TestT6NamesAsStated(t *testing.T) {
	t.Parallel()
	text := contract(t)
	b := &Bus{cfg: Config{Space: "SPACE"}}
	stated := []string{
		b.streamName(transport.Work), b.streamName(transport.Lane), b.subject(transport.ToWork("TOPIC")),
		string(ackPayload), string(progressPayload), "+TERM",
	}
	transport.EncodeHeader(&transport.Message{Header: transport.Header{
		GUID: [16]byte{1}, OriginSession: [16]byte{1}, PublishedAt: 1, Traceparent: "00", Topic: "TOPIC",
	}}, func(name, _ string) { stated = append(stated, name) })
	require.Len(t, stated, 6+11)
	stated = append(stated, transport.HeaderMAC, b.askSubject("TOPIC"))
	stated = append(stated, strings.TrimRight(b.endedSubject([16]byte{}), "0")+"JOB")
	for _, word := range stated {
		require.Contains(t, text, "`"+word, word)
	}
	require.Equal(t, `-NAK {"delay": 10000000}`, string(nakPayload(0)))
	require.Contains(t, text, "`-NAK {\"delay\": NANOSECONDS}`, at least "+strings.Replace(transport.MinNakDelay.String(), "ms", " ms", 1))
}
