package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// A URL that cannot be one is refused without a connection, and no password is in the error.
func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"nats://a:4222", "a", "a:4222", "tls://u:p@a:1,nats://b, c", "ws://[::1]:80", "nats://a:4222/"} {
		require.NoError(t, transport.CheckURL(good), good)
	}
	for bad, says := range map[string]string{
		"":                             "URL is not like nats://host:4222 (several are separated by commas); number 1: it has no host",
		"nats://":                      "no host",
		"http://a":                     `the scheme "http" is none of nats, tls, ws, wss`,
		"a,,b":                         "number 2: it has no host",
		"a:port":                       "invalid port",
		"nats://a:99999":               `the port "99999" is none`,
		"nats://u:hunter2 x@a:4222":    "number 1: ",
		"nats://u:hunter2@a:4222:4222": "number 1: ",
	} {
		err := transport.CheckURL(bad)
		require.ErrorContains(t, err, says, bad)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
