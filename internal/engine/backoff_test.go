package engine

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// T2, I11: the message of a turn's first publication is looked for after one Resend, however
// many attempts and publications came before. Then the time doubles, up to a bound.
func TestT2BackoffBeginsAnewWithATurn(t *testing.T) {
	t.Parallel()
	s := &sweeper{e: &Engine{cfg: Config{Resend: 5 * time.Second, Jitter: rand.N[time.Duration]}}}
	const second = 1_000_000
	for name, c := range map[string]struct {
		row         store.DueRow
		least, most time.Duration
	}{
		"first of turn 9": {
			store.DueRow{Publication: 8, Turn: 9, TurnSent: 8, Now: 900 * second},
			4 * time.Second,
			6 * time.Second,
		},
		"lost once": {
			store.DueRow{Publication: 9, Turn: 9, TurnSent: 9, PublishedAt: 895 * second, Now: 900 * second},
			9 * time.Second,
			11 * time.Second,
		},
		"lost again and again": {
			store.DueRow{Publication: 9, Turn: 1, TurnSent: 1, PublishedAt: 0, Now: 900 * second},
			270 * time.Second,
			330 * time.Second,
		},
		"waits since long, new": {
			store.DueRow{Publication: 1, Turn: 1, TurnSent: 1, PublishedAt: 0, Now: 900 * second},
			9 * time.Second,
			11 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.LessOrEqual(t, s.again(c.row), c.most)
			require.GreaterOrEqual(t, s.again(c.row), c.least)
		})
	}
}

// T4: an input is inside its request as far as the bus can carry it, otherwise it goes by
// reference. So a server with a small max_payload gets every request.
func TestT4InputByReferenceOnASmallBus(t *testing.T) {
	t.Parallel()
	require.Equal(t, wire.MaxInline, wire.Inline(0))
	require.Equal(t, wire.MaxInline, wire.Inline(1<<20))
	st := memstore.New(memstore.Config{Space: "test"})
	ref := deployed(t, st, oneWorker("1"))
	bus := membus.New(membus.Config{MaxPayload: 16 << 10})
	defer func() { require.NoError(t, bus.Close()) }()
	p := &Publisher{Bus: bus, Flows: NewFlows(st), Space: "test", Lanes: 1, Observer: observer.Nop{}}
	for size, inside := range map[int]bool{8 << 10: true, 8<<10 + 1: false} {
		m := transport.Message{}
		body := []byte(`"` + strings.Repeat("x", size-2) + `"`)
		require.NoError(t, p.request(t.Context(), &store.Outgoing{
			Row: collation.Row{Kind: journal.MessageRequest, Activity: "a", Topic: "topic", Body: body}, Flow: ref,
		}, &m))
		q, err := wire.Decode[wire.Request](m.Body)
		require.NoError(t, err)
		require.Equal(t, inside, q.Input != nil, "%d bytes", size)
	}
}
