package membus_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/transport"
)

func TestBus(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Setup {
		const ackWait, inFlight = time.Second, 16
		bus := membus.New(membus.Config{AckWait: ackWait, MaxInFlight: inFlight})
		t.Cleanup(func() { require.NoError(t, bus.Close()) })
		return transporttest.Setup{
			Bus: bus, Other: bus, AckWait: ackWait, MaxInFlight: inFlight,
			Wipe: func(*testing.T) { bus.Wipe() },
			Inject: func(_ *testing.T, to transport.Destination, headers map[string]string, body []byte) {
				bus.Inject(to, headers, body)
			},
		}
	})
}
