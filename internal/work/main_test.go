package work

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/testkit/effectstest"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

func TestMain(m *testing.M) {
	soak.Checks(25, 250)
	goleak.VerifyTestMain(m)
}

const patience = time.Minute

// calm is the shortest wait in a house, so that no redelivery or lost lease disturbs a
// test on a busy machine; see hasty.
const calm = time.Minute

// house is a runtime with its bus and its store.
type house struct {
	t     *testing.T
	bus   *membus.Bus
	store *effectstest.Store
	reg   *workers.Registry
	cfg   Config

	session effectstest.Session

	mu      sync.Mutex
	letters []collation.DeadLetter
	raw     [][]byte

	answers chan transport.Message
	stop    context.CancelFunc
	ended   chan error
}

func newHouse(t *testing.T) *house {
	h := &house{
		t: t, bus: membus.New(membus.Config{AckWait: calm}), store: effectstest.New(), reg: workers.New(),
		answers: make(chan transport.Message, 1000), ended: make(chan error, 1),
	}
	h.cfg = Config{
		Registry: h.reg, Bus: h.bus, Store: h.store, Space: "shop", Lanes: 4, Holder: "w",
		Session: &h.session, AckWait: calm, ResponseWait: calm,
		Drain:  5 * time.Second,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		DeadLetter: func(_ context.Context, d collation.DeadLetter, raw []byte) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.letters, h.raw = append(h.letters, d), append(h.raw, raw)
			return nil
		},
	}
	return h
}

// inBubble runs a test on a clock that moves when all goroutines wait (testing/synctest).
func inBubble(t *testing.T, run func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, run)
}

// open starts the runtime and an engine that receives every answer.
func (h *house) open() {
	h.t.Helper()
	rt, err := NewRuntime(h.cfg)
	require.NoError(h.t, err)
	ctx, cancel := context.WithCancel(h.t.Context())
	h.stop = cancel
	go func() { h.ended <- rt.Run(ctx) }()
	var engine sync.WaitGroup
	listening, deaf := context.WithCancel(context.Background())
	for lane := range h.cfg.Lanes {
		engine.Go(func() {
			_ = h.bus.Consume(listening, transport.ToLane(lane), 10, func(d transport.Delivery) {
				h.answers <- *d.Message()
				_ = d.Ack()
			})
		})
	}
	h.t.Cleanup(func() {
		cancel()
		require.NoError(h.t, h.closed())
		deaf()
		engine.Wait()
		require.NoError(h.t, h.bus.Close())
	})
}

// closed waits for Run to return; it can be called again.
func (h *house) closed() error {
	h.t.Helper()
	select {
	case err := <-h.ended:
		h.ended <- err
		return err
	case <-time.After(patience):
		return errors.New("Run did not return")
	}
}

// ask makes a complete request.
func ask(topic string, n byte, input string) wire.Request {
	job := collation.NewJobID("shop", string('a'+rune(n)), 1)
	return wire.Request{
		Space: "shop", Job: job.String(), Key: "key", Generation: 1, Flow: "order", Version: "1",
		Activity: "charge", DAD: ",0,0", Topic: topic,
		Request: collation.RequestGUID(job.Start(), int(n)).String(), Turn: 1, Attempt: 1, Attempts: 3,
		Input: json.RawMessage(input),
	}
}

func jobOf(t testing.TB, q wire.Request) journal.JobID {
	t.Helper()
	id, err := journal.ParseJobID(q.Job)
	require.NoError(t, err)
	return id
}

func guid(t testing.TB, q wire.Request) journal.GUID {
	t.Helper()
	g, err := journal.ParseGUID(q.Request)
	require.NoError(t, err)
	return g
}

// send publishes a request as a given publication of its row.
func (h *house) send(q wire.Request, publication int) {
	h.t.Helper()
	m := transport.Message{
		To:     transport.ToWork(q.Topic),
		Header: transport.Header{GUID: guid(h.t, q), Publication: publication, Turn: q.Turn, PublishedAt: 77, Epoch: 1},
		Body:   wire.Encode(q),
	}
	require.NoError(h.t, transporttest.Publish(h.t.Context(), h.bus, m))
}

// ask is send of a request that has a row.
func (h *house) ask(q wire.Request, publication int) {
	h.t.Helper()
	h.store.Put(jobOf(h.t, q), guid(h.t, q), nil)
	h.send(q, publication)
}

// answer is the next response that reaches the engine, without its times, which differ
// between runs.
func (h *house) answer() (transport.Message, *wire.Hint) {
	h.t.Helper()
	m, hint := h.timed()
	hint.Response.BeganUS, hint.Response.RanUS = 0, 0
	return m, hint
}

// timed is the next response, with the times of its run.
func (h *house) timed() (transport.Message, *wire.Hint) {
	h.t.Helper()
	select {
	case m := <-h.answers:
		hint, err := wire.Decode[wire.Hint](m.Body)
		require.NoError(h.t, err)
		_, err = hint.Response.Journal()
		require.NoError(h.t, err, "the engine must be able to take it")
		return m, hint
	case <-time.After(patience):
		require.FailNow(h.t, "no answer")
		return transport.Message{}, nil
	}
}

// gone waits until the topic's queue is empty: everything is acked or terminated.
func (h *house) gone(topic string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.bus.Len(transport.ToWork(topic)) == 0 }, patience, time.Millisecond)
}

// silent requires that nothing was answered so far.
func (h *house) silent() {
	h.t.Helper()
	select {
	case m := <-h.answers:
		require.FailNow(h.t, "an answer", "%s", bytes.TrimSpace(m.Body))
	default:
	}
}

// one sends a request and returns the response.
func (h *house) one(q wire.Request) *wire.Response {
	h.t.Helper()
	h.ask(q, 1)
	_, hint := h.answer()
	h.gone(q.Topic)
	return hint.Response
}

// late is one of a request whose attempt has 20 ms.
func (h *house) late(q wire.Request) *wire.Response {
	h.t.Helper()
	q.TimeoutMS = 20
	return h.one(q)
}
