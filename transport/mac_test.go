package transport_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/transport"
)

func ring(t *testing.T, topics ...keyring.TopicKey) *keyring.Ring {
	t.Helper()
	k := keyring.Keys{On: true, Topics: topics}
	if topics == nil {
		k.Roots = []keyring.Root{{ID: 1, Secret: bytes.Repeat([]byte{1}, keyring.SecretBytes)}}
	}
	return keyring.New(k)
}

// wired is a message as it is on the wire.
func wired(m *transport.Message) map[string]string {
	all := map[string]string{}
	transport.EncodeHeader(m, func(name, value string) { all[name] = value })
	return all
}

func delivered(
	to transport.Destination, wire map[string]string, body []byte, keys transport.Keys,
) (transport.Message, error) {
	return transport.Decode(to, func(name string) string { return wire[name] }, body, keys)
}

func signedMessage(t *testing.T, to transport.Destination, topic string, keys transport.Keys) *transport.Message {
	t.Helper()
	m := &transport.Message{To: to, Body: []byte("{}"), Header: transport.Header{
		GUID: [16]byte{1}, Publication: 2, Turn: 1, Epoch: 3, OriginSession: [16]byte{4}, OriginSeq: 5, PublishedAt: 6,
		Traceparent: "00-1", Topic: topic,
	}}
	require.NoError(t, m.Sign(keys))
	return m
}

// S1: a MAC covers the destination, the body and each header that decides; the id of the message ends with it.
func TestS1MACCoversWhatDecides(t *testing.T) {
	t.Parallel()
	keys := ring(t)
	m := signedMessage(t, transport.ToLane(3), "pay", keys)
	wire := wired(m)
	got, err := delivered(m.To, wire, m.Body, keys)
	require.NoError(t, err)
	require.Equal(t, m.Header, got.Header)
	require.NotContains(t, wire, transport.HeaderSum)
	require.Regexp(t, `\.`+wire[transport.HeaderMAC]+`$`, wire[transport.HeaderMsgID])

	for name := range wire {
		if name == transport.HeaderMsgID { // the server reads it, and nobody else
			continue
		}
		for _, value := range []string{"", "1", wire[name] + "0"} {
			changed := maps.Clone(wire)
			changed[name] = value
			if value == wire[name] {
				continue
			}
			_, err := delivered(m.To, changed, m.Body, keys)
			require.ErrorIs(t, err, transport.ErrForged, "%s: %q", name, value)
		}
	}
	_, err = delivered(transport.ToLane(4), wire, m.Body, keys)
	require.ErrorIs(t, err, transport.ErrForged, "another lane")
	_, err = delivered(m.To, wire, []byte("[]"), keys)
	require.ErrorIs(t, err, transport.ErrForged, "another body")
}

// S1: what is signed before a message has headers is what its headers say, whichever of them it has.
func TestS1WhatIsSignedIsOnTheWire(t *testing.T) {
	t.Parallel()
	keys := ring(t)
	for what, m := range map[string]transport.Message{
		"as little as can be": {To: transport.ToStart()},
		"a topic of both":     {To: transport.ToWork("pay.charge"), Header: transport.Header{Topic: "ship"}},
		"a lane of four digits": {
			To:     transport.ToLane(transport.MaxLanes - 1),
			Header: transport.Header{Publication: 1 << 30, Turn: 7, Epoch: 1 << 60},
		},
		"an order without a session": {To: transport.ToLane(0), Header: transport.Header{OriginSeq: 5}},
		"a session": {
			To: transport.ToLane(0), Header: transport.Header{OriginSession: [16]byte{15: 1}, PublishedAt: 1},
		},
		"spaces, which NATS drops": {To: transport.ToLane(0), Header: transport.Header{Traceparent: " 00-1 "}},
		"more than the usual headers": {
			To: transport.ToLane(0), Header: transport.Header{Traceparent: strings.Repeat("x", transport.MaxTraceparent)},
			Body: make([]byte, 1<<20),
		},
	} {
		m.Header.GUID = [16]byte{1}
		require.NoError(t, m.Sign(keys), what)
		_, err := delivered(m.To, wired(&m), m.Body, keys)
		require.NoError(t, err, what)
	}
}

// S2: a stranger's message is refused before anything of it is read.
func TestS2StrangersAreNotRead(t *testing.T) {
	t.Parallel()
	keys := ring(t)
	for _, wire := range []map[string]string{
		{},
		{transport.HeaderGUID: "nonsense"},
		{transport.HeaderMAC: "1.00"},
		{transport.HeaderTopic: strings.Repeat("x", transport.MaxTopic+1)},
		wired(signedMessage(t, transport.ToStart(), "", nil)),
	} {
		_, err := delivered(transport.ToStart(), wire, nil, keys)
		require.ErrorIs(t, err, transport.ErrForged)
		require.NotErrorIs(t, err, transport.ErrMalformed)
	}
}

// S2: who has the key of a topic signs its requests and its responses, and nothing else.
func TestS2AWorkerSpeaksForItsTopic(t *testing.T) {
	t.Parallel()
	engine := ring(t)
	worker := ring(t, engine.TopicKeys("pay")...)
	answer := signedMessage(t, transport.ToLane(0), "pay", worker)
	_, err := delivered(answer.To, wired(answer), answer.Body, engine)
	require.NoError(t, err)
	request := signedMessage(t, transport.ToWork("pay"), "", engine)
	_, err = delivered(request.To, wired(request), request.Body, worker)
	require.NoError(t, err)

	m := &transport.Message{To: transport.ToLane(0), Header: transport.Header{GUID: [16]byte{1}}}
	require.ErrorIs(t, m.Sign(worker), transport.ErrNoKey, "a message of the engine")
	m.Header.Topic = "ship"
	require.ErrorIs(t, m.Sign(worker), transport.ErrNoKey, "of another topic")
	for _, claimed := range []string{"", "ship"} {
		wire := wired(answer)
		wire[transport.HeaderTopic] = claimed
		_, err = delivered(answer.To, wire, answer.Body, engine)
		require.ErrorIs(t, err, transport.ErrForged, "%q", claimed)
	}
	_, err = delivered(answer.To, wired(signedMessage(t, transport.ToLane(0), "", engine)), answer.Body, worker)
	require.ErrorIs(t, err, transport.ErrNoKey, "it cannot check messages of the engine")
}

// S3: the MAC of docs/wire.md is that of the code.
func TestS3MACAsStated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/wire.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```json mac\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, block)
	var stated struct {
		Key, To, Body, MAC string
		Headers            map[string]string
	}
	require.NoError(t, json.Unmarshal(block[1], &stated))
	_, digits, _ := strings.Cut(stated.Key, ":")
	key, err := hex.DecodeString(digits)
	require.NoError(t, err)
	worker := ring(t, keyring.TopicKey{Topic: "payments.charge", ID: 7, Key: key})
	require.Equal(t, stated.Key, keyring.TopicKey{ID: 7, Key: key}.String())
	stated.Headers[transport.HeaderMAC] = stated.MAC
	m, err := delivered(transport.ToLane(2), stated.Headers, []byte(stated.Body), worker)
	require.NoError(t, err)
	require.NoError(t, m.Sign(worker))
	require.Equal(t, stated.MAC, wired(&m)[transport.HeaderMAC])
}
