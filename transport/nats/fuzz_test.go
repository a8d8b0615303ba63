package nats

import (
	"errors"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// FuzzPubAck: a publication counts as sent only if a stream says so; every other reply is
// an error of the port that names the subject (T2).
func FuzzPubAck(f *testing.F) {
	f.Add("", []byte(`{"stream":"QUIPU_a_WORK","seq":7,"duplicate":true}`))
	f.Add("", []byte(`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`))
	f.Add("503", []byte(nil))
	f.Add("", []byte(`{"stream":"","seq":1}`))
	f.Add("", []byte(`{`))
	f.Fuzz(func(t *testing.T, status string, data []byte) {
		reply := &natsgo.Msg{Data: data, Header: natsgo.Header{}}
		reply.Header.Set(statusHeader, status)
		err := pubAckError("quipu.a.work.pay", reply)
		if err == nil {
			require.NotEqual(t, statusNoResponders, status)
			require.Contains(t, strings.ToLower(string(data)), "stream")
			return
		}
		require.ErrorContains(t, err, "quipu.a.work.pay")
		require.True(t, errors.Is(err, transport.ErrUnavailable) || errors.Is(err, transport.ErrFull) ||
			errors.Is(err, transport.ErrTooLarge), "%v", err)
	})
}

// FuzzSubject: no two valid destinations share a subject or a consumer (T5).
func FuzzSubject(f *testing.F) {
	f.Add(uint8(3), 0, "a.b", uint8(3), 0, "a=b")
	f.Add(uint8(1), 3, "", uint8(3), 0, "lane-3")
	f.Add(uint8(2), 0, "", uint8(3), 0, "start")
	b := &Bus{cfg: Config{Space: "shop"}}
	f.Fuzz(func(t *testing.T, kind uint8, lane int, topic string, otherKind uint8, otherLane int, otherTopic string) {
		x := transport.Destination{Kind: transport.Kind(kind), Lane: lane, Topic: topic}
		y := transport.Destination{Kind: transport.Kind(otherKind), Lane: otherLane, Topic: otherTopic}
		if x.Validate() != nil || y.Validate() != nil {
			return
		}
		require.Equal(t, x == y, b.subject(x) == b.subject(y))
		require.Equal(t, x == y, durableName(x) == durableName(y))
		require.False(t, strings.ContainsAny(durableName(x), ".*> "), "a consumer's name")
	})
}

// FuzzRedactURL: no password appears in an error or a log (4.5).
func FuzzRedactURL(f *testing.F) {
	f.Add("nats://ann:s3cret@a:4222, nats://b", "s3cret")
	f.Add("nats://tok3n@a", "tok3n")
	f.Fuzz(func(t *testing.T, urls, secret string) {
		_ = redactURL(urls)
		for _, c := range secret {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
				return
			}
		}
		if len(secret) < 12 {
			secret += "0123456789ab"
		}
		for _, user := range []string{secret, "ann:" + secret, ":" + secret} {
			require.NotContains(t, redactURL("nats://"+user+"@host:4222,nats://"+user+"@other"), secret)
		}
	})
}

// FuzzPullToken: the token of a pull is read as it was written; any other text of a server is some
// pull that is not under way, and nothing panics.
func FuzzPullToken(f *testing.F) {
	f.Add("1z-5", int64(71), 5)
	f.Add("--", int64(0), 0)
	f.Fuzz(func(t *testing.T, token string, pull int64, batch int) {
		readPullToken(token)
		if pull < 0 || batch < 0 {
			return
		}
		again, asked := readPullToken(pullToken(pull, batch))
		require.Equal(t, []any{pull, batch}, []any{again, asked})
	})
}
