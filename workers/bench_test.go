package workers

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects/effectstest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/wire"
)

// instant is a bus that delivers one message b.N times and accepts every answer.
type instant struct {
	transport.Bus
	msg   transport.Message
	n     int
	slots chan struct{}
}

func (i *instant) MaxPayload() int { return 1 << 20 }

func (i *instant) Send(_ context.Context, _ []transport.Message, done func(int, error)) error {
	done(0, nil)
	return nil
}

func (i *instant) Consume(_ context.Context, _ transport.Destination, _ int, handle func(transport.Delivery)) error {
	for range i.n {
		i.slots <- struct{}{}
		handle(&instantDelivery{bus: i})
	}
	return transport.ErrClosed
}

type instantDelivery struct{ bus *instant }

func (d *instantDelivery) Message() *transport.Message { return &d.bus.msg }
func (d *instantDelivery) Err() error                  { return nil }
func (d *instantDelivery) Count() int                  { return 1 }
func (d *instantDelivery) Ack() error                  { <-d.bus.slots; return nil }
func (d *instantDelivery) Nak(time.Duration) error     { <-d.bus.slots; return nil }
func (d *instantDelivery) InProgress() error           { return nil }
func (d *instantDelivery) Term(string) error           { return nil }

// BenchmarkRequest is one no-op request, without the work of a bus.
func BenchmarkRequest(b *testing.B) {
	q := ask("echo", 1, `{"amount":12}`)
	bus := &instant{n: b.N, slots: make(chan struct{}, DefaultConcurrency)}
	g, err := journal.ParseGUID(q.Request)
	require.NoError(b, err)
	bus.msg = transport.Message{To: transport.ToWork("echo"), Header: transport.Header{GUID: g, Publication: 1, Turn: 1}, Body: wire.Encode(q)}
	reg := New()
	HandleRaw(reg, "echo", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil })
	rt, err := NewRuntime(Config{
		Registry: reg, Bus: bus, Store: effectstest.New(), Session: &effectstest.Session{}, Space: "shop",
		DeadLetter: func(context.Context, collation.DeadLetter, []byte) error { return nil },
	})
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	require.ErrorIs(b, rt.Run(b.Context()), transport.ErrClosed)
}
