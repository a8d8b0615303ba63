package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/transport/memory"
	"github.com/quipu-journal/quipu/transport/transporttest"
)

func TestBus(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(t *testing.T) transporttest.Setup {
		const ackWait, inFlight = time.Second, 16
		bus := memory.New(memory.Config{AckWait: ackWait, MaxInFlight: inFlight})
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
