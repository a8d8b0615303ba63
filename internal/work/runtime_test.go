package work

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// A response is a message to the lane of its job, and says when its run began. The handler knows
// its call.
func TestResponseMessage(t *testing.T) {
	t.Parallel()
	require.Zero(t, workers.Info(t.Context()))
	h := newHouse(t)
	var within time.Time
	var info workers.Call
	workers.Handle(h.reg, "sum", func(ctx context.Context, in []int) (map[string]int, error) {
		within, info = time.Now(), workers.Info(ctx)
		time.Sleep(3 * time.Millisecond)
		return map[string]int{"sum": in[0] + in[1], "n": 2}, nil
	})
	h.open()
	q := ask("sum", 1, `[1,2]`)
	before := time.Now()
	h.ask(q, 1)
	m, hint := h.timed()
	began, ran := time.UnixMicro(hint.Response.BeganUS), time.Duration(hint.Response.RanUS)*time.Microsecond
	require.WithinRange(t, began, before.Truncate(time.Microsecond), within)
	require.GreaterOrEqual(t, ran, 3*time.Millisecond)
	require.LessOrEqual(t, ran, time.Since(before))
	job, err := journal.ParseJobID(q.Job)
	require.NoError(t, err)
	require.Equal(t, transport.ToLane(wire.LaneOf(job, 4)), m.To)
	require.Equal(t, transport.Header{
		GUID: collation.ResponseGUID(guid(t, q), 1), Publication: 1, Turn: 1, Epoch: 1, PublishedAt: 77, Topic: "sum",
	}, m.Header)
	require.Equal(t, &wire.Hint{
		Kind: journal.MessageResponse, Job: q.Job, Row: q.Request, Activity: "charge", DAD: ",0,0", Turn: 1, Flow: "order", Version: "1",
		Response: &wire.Response{
			Kind: journal.ResponseTerminal, Code: 200, Output: json.RawMessage(`{"n":2,"sum":3}`),
			BeganUS: hint.Response.BeganUS, RanUS: hint.Response.RanUS,
		},
	}, hint)
	require.Equal(t, workers.Call{
		Space: "shop", Job: q.Job, Key: "key", Generation: 1, Flow: "order", Version: "1", Activity: "charge", DAD: ",0,0",
		Topic: "sum", Request: q.Request, Turn: 1, Attempt: 1, Attempts: 3,
	}, info)
	h.gone("sum")
	require.Empty(t, h.store.Calls(), "a first delivery costs no round trip")
}

func TestErrorsBecomeResponses(t *testing.T) {
	t.Parallel()
	plain := errors.New("broken pipe")
	const terminal, failed = journal.ResponseTerminal, journal.ResponseFailedAttempt
	for name, c := range map[string]struct {
		err   error
		kind  journal.ResponseKind
		code  int
		class string
		after int64
	}{
		"plain":               {plain, failed, 500, wire.ClassError, 0},
		"business 4xx":        {workers.Fail(402, "broken pipe"), terminal, 402, wire.ClassBusiness, 0},
		"business 408":        {workers.Fail(408, "broken pipe"), failed, 408, wire.ClassBusiness, 0},
		"business 429":        {workers.Fail(429, "broken pipe"), failed, 429, wire.ClassBusiness, 0},
		"business 5xx":        {workers.Fail(503, "broken pipe"), failed, 503, wire.ClassBusiness, 0},
		"no error code":       {workers.Fail(200, "broken pipe"), failed, 500, wire.ClassBusiness, 0},
		"wrapped":             {errors.Join(errors.New("a"), workers.Fail(404, "broken pipe")), terminal, 404, wire.ClassBusiness, 0},
		"fatal":               {workers.Fatal(plain), terminal, 500, wire.ClassFatal, 0},
		"fatal 5xx":           {workers.Fatal(workers.Fail(503, "broken pipe")), terminal, 503, wire.ClassBusiness, 0},
		"retry after":         {workers.RetryAfter(2*time.Second, plain), failed, 500, wire.ClassError, 2000},
		"retry after 404":     {workers.RetryAfter(time.Second, workers.Fail(404, "broken pipe")), failed, 404, wire.ClassBusiness, 1000},
		"fatal goes first":    {workers.Fatal(workers.RetryAfter(time.Second, plain)), terminal, 500, wire.ClassFatal, 0},
		"not done":            {effects.NotDone(plain), failed, 500, wire.ClassError, 0},
		"not done, retry":     {workers.RetryAfter(time.Second, effects.NotDone(plain)), failed, 500, wire.ClassError, 1000},
		"retry after nothing": {workers.RetryAfter(-time.Second, plain), failed, 500, wire.ClassError, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := failure(c.err, false)
			failedWith(t, r, c.kind, c.code, c.class, "broken pipe")
			require.Equal(t, c.after, r.RetryAfterMS)
			_, err := r.Journal()
			require.NoError(t, err)
		})
	}
	require.NoError(t, workers.Fatal(nil))
	require.NoError(t, workers.RetryAfter(time.Second, nil))
	require.Equal(t, 408, failure(plain, true).Code)
	require.Equal(t, wire.ClassTimeout, failure(plain, true).Error.Class)
	require.Equal(t, 404, failure(workers.Fail(404, ""), true).Code, "what an error says of itself goes first")
}

func TestFailDataIsBounded(t *testing.T) {
	t.Parallel()
	r := failure(workers.Fail(409, "taken", workers.Data(map[string]int{"b": 1, "a": 2})), false)
	require.Equal(t, `{"a":2,"b":1}`, string(r.Error.Data))
	r = failure(workers.Fail(409, "taken", workers.Data(strings.Repeat("x", port.MaxErrorData))), false)
	require.Nil(t, r.Error.Data)
	require.Contains(t, r.Error.Message, "the limit is 65536")
	r = failure(workers.Fail(409, "taken", workers.Data(func() {})), false)
	require.Contains(t, r.Error.Message, "left out")
}

func TestPanicsAndGoexitAreFailedTries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	workers.HandleRaw(h.reg, "boom", func(context.Context, json.RawMessage) (json.RawMessage, error) {
		panic(strings.Repeat("boom ", wire.MaxText) + "\x00")
	})
	workers.HandleRaw(h.reg, "leave", func(context.Context, json.RawMessage) (json.RawMessage, error) {
		runtime.Goexit()
		return nil, nil
	})
	h.open()
	r := h.one(ask("boom", 1, `{}`))
	require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
	require.Equal(t, wire.ClassPanic, r.Error.Class)
	require.Contains(t, r.Error.Stack, "runtime_test.go")
	require.LessOrEqual(t, len(r.Error.Message), wire.MaxText)
	require.Greater(t, len(r.Error.Message), wire.MaxText*3/4, "what fits stays")
	require.LessOrEqual(t, len(r.Error.Stack), wire.MaxText)
	r = h.one(ask("leave", 2, `{}`))
	require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
	require.Contains(t, r.Error.Message, "Goexit")
}

func TestInputsAndOutputs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	workers.Handle(h.reg, "int", func(_ context.Context, in int) (int, error) { return in, nil })
	workers.Handle(h.reg, "big", func(_ context.Context, n int) (string, error) { return strings.Repeat("x", n), nil })
	workers.HandleRaw(h.reg, "raw", func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"a":`), nil
	})
	workers.HandleRaw(h.reg, "nil", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil })
	h.open()

	failedWith(t, h.one(ask("int", 1, `"seven"`)), journal.ResponseTerminal, 400, wire.ClassInput)
	failedWith(t, h.one(ask("raw", 2, `1`)), journal.ResponseTerminal, 500, wire.ClassInvalid)
	require.Equal(t, "null", string(h.one(ask("nil", 3, `1`)).Output))
	r := h.one(ask("big", 4, `1048577`))
	failedWith(t, r, journal.ResponseTerminal, 500, wire.ClassTooLarge, "1048576")
	require.Len(t, h.one(ask("big", 5, `1000`)).Output, 1002)

	r = h.one(ask("big", 6, `300000`))
	require.Nil(t, r.Output)
	d, err := journal.ParseDigest(r.Ref)
	require.NoError(t, err)
	body := h.store.Payload(collation.NewJobID("shop", "g", 1), d)
	require.Len(t, body, 300002)
	require.Equal(t, d, journal.Digest(sha256.Sum256(body)))

	q := ask("int", 7, ``)
	q.Input = nil
	h.store.Put(jobOf(t, q), guid(t, q), []byte(`41`))
	h.send(q, 1)
	_, hint := h.answer()
	require.Equal(t, "41", string(hint.Response.Output), "an input that is not in the message is read from the row")
}

func TestT3PoisonGoesToTheDeadLettersFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	workers.HandleRaw(h.reg, "echo", echo)
	record, standing := h.cfg.DeadLetter, []int{}
	h.cfg.DeadLetter = func(ctx context.Context, d collation.DeadLetter, raw []byte) error {
		h.mu.Lock()
		standing = append(standing, h.bus.Len(transport.ToWork("echo")))
		h.mu.Unlock()
		return record(ctx, d, raw)
	}
	h.open()
	good := ask("echo", 1, `1`)
	for name, c := range map[string]struct {
		change func(q *wire.Request)
		reason string
	}{
		"space":    {func(q *wire.Request) { q.Space = "elsewhere" }, reasonForeign},
		"job":      {func(q *wire.Request) { q.Job = "x" }, reasonUndecodable},
		"dad":      {func(q *wire.Request) { q.DAD = "x" }, reasonUndecodable},
		"turn":     {func(q *wire.Request) { q.Turn = 0 }, reasonUndecodable},
		"activity": {func(q *wire.Request) { q.Activity = "" }, reasonUndecodable},
		"topic":    {func(q *wire.Request) { q.Topic = "other" }, reasonUndecodable},
	} {
		q := good
		c.change(&q)
		body := wire.Encode(q)
		h.bus.Inject(transport.ToWork("echo"), map[string]string{
			transport.HeaderGUID: strings.ReplaceAll(good.Request, "-", ""), transport.HeaderTurn: "1",
			transport.HeaderPublication: "1",
		}, body)
		h.gone("echo")
		h.mu.Lock()
		require.NotEmpty(t, h.letters, name)
		require.Equal(t, c.reason, h.letters[len(h.letters)-1].Reason, name)
		require.Equal(t, body, h.raw[len(h.raw)-1], name)
		h.mu.Unlock()
	}
	h.bus.Inject(transport.ToWork("echo"), map[string]string{}, []byte("no header"))
	h.bus.Inject(transport.ToWork("echo"), map[string]string{transport.HeaderGUID: strings.Repeat("a", 32)}, []byte("no json"))
	h.gone("echo")
	require.Len(t, h.letters, 8)
	require.NotContains(t, standing, 0, "a message stands until its dead letter is recorded")
	h.silent()
}

// E9: a later delivery is leased first. One of a request that was answered or ran too often is acked,
// and nothing runs.
func TestE9LaterDeliveriesAreLeasedFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	workers.HandleRaw(h.reg, "echo", echo)
	often := ask("echo", 3, `1`)
	h.store.Put(jobOf(t, often), guid(t, often), nil)
	for range store.MaxRuns {
		_, err := h.store.Lease(t.Context(), jobOf(t, often), guid(t, often), 1, "another", 2)
		require.NoError(t, err)
		h.store.Expire(guid(t, often))
	}
	h.open()

	before := len(h.store.Calls())
	h.ask(ask("echo", 1, `1`), 2)
	h.answer()
	for _, q := range []wire.Request{ask("echo", 2, `1`), often} { // the first has no row: it was answered
		h.send(q, 2)
		h.gone("echo")
		h.silent()
	}
	require.Equal(t, []string{"Lease", "Lease", "Lease"}, h.store.Calls()[before:])
}

// leased is a house with a request that another process has, and that comes again.
func leased(t *testing.T) (*house, wire.Request) {
	h := newHouse(t)
	workers.HandleRaw(h.reg, "echo", echo)
	q := ask("echo", 1, `1`)
	h.store.Put(jobOf(t, q), guid(t, q), nil)
	_, err := h.store.Lease(t.Context(), jobOf(t, q), guid(t, q), 1, "another", 2)
	require.NoError(t, err)
	h.open()
	h.send(q, 2)
	return h, q
}

func TestE9LeasedByAnotherIsHandedBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h, q := leased(t)
		require.Eventually(t, func() bool { return len(h.store.Calls()) > 2 }, patience, time.Millisecond, "it comes again")
		h.silent()
		h.store.Expire(guid(t, q))
		_, hint := h.answer()
		require.Equal(t, 200, hint.Response.Code)
		h.gone("echo")
	})
}

// C10, W8: a request that was handed back many times, because the process that had it died, waits for
// seconds when its next run meets trouble: those hand-backs were none of the infrastructure.
func TestC10TroubleAfterALongLeaseCostsSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h, q := leased(t)
		require.Eventually(t, func() bool { return len(h.store.Calls()) > 20 }, time.Hour, time.Second, "it comes again and again")
		var trouble atomic.Int64
		h.store.Fault = func(string) error {
			if trouble.CompareAndSwap(0, time.Now().UnixNano()) {
				return store.ErrUnavailable
			}
			return nil
		}
		h.store.Expire(guid(t, q))
		_, hint := h.answer()
		require.Equal(t, 200, hint.Response.Code)
		require.Less(t, time.Since(time.Unix(0, trouble.Load())), 6*time.Second)
	})
}

func TestC10InfrastructureIsNeverAResponse(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	workers.HandleRaw(h.reg, "echo", echo)
	var up atomic.Bool
	h.store.Fault = func(string) error {
		if up.Load() {
			return nil
		}
		return store.ErrUnavailable
	}
	h.open()
	q := ask("echo", 1, `1`)
	h.ask(q, 2)
	require.Eventually(t, func() bool { return len(h.store.Calls()) > 0 }, patience, time.Millisecond)
	h.silent()
	up.Store(true)
	_, hint := h.answer()
	require.Equal(t, 200, hint.Response.Code)
}

func TestT4AnotherEpochIsAcked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.cfg.Epoch = func() int64 { return 2 }
	workers.HandleRaw(h.reg, "echo", echo)
	h.open()
	h.send(ask("echo", 1, `1`), 1)
	h.gone("echo")
	h.silent()
}

// C10: a bus with small messages does not keep an error from being answered. Parts that
// do not fit are left out: the stack first, the data last.
func TestC10ErrorsFitTheSmallestMessages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 6<<10)
	for name, c := range map[string]struct {
		fail func() error
		data bool
	}{
		"a long message":         {func() error { return errors.New(long) }, false},
		"a panic":                {func() error { panic(long) }, false},
		"data, and little else":  {func() error { return workers.Fail(422, "no", workers.Data(strings.Repeat("d", 4<<10))) }, true},
		"data and a long text":   {func() error { return workers.Fail(422, long, workers.Data(strings.Repeat("d", 4<<10))) }, true},
		"data that does not fit": {func() error { return workers.Fail(422, "no", workers.Data(strings.Repeat("d", 20<<10))) }, false},
		"escaped":                {func() error { return errors.New(strings.Repeat("\x01", 8<<10)) }, false},
		"nothing to cut":         {func() error { return errors.New("no") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.bus = membus.New(membus.Config{AckWait: 300 * time.Millisecond, MaxPayload: 8 << 10})
			h.cfg.Bus = h.bus
			workers.HandleRaw(h.reg, "fails", func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return nil, c.fail()
			})
			h.open()
			r := h.one(ask("fails", 1, `{}`))
			require.NotNil(t, r.Error)
			require.NotEmpty(t, r.Error.Message)
			require.Equal(t, c.data, r.Error.Data != nil)
			require.Equal(t, name == "data that does not fit", strings.Contains(r.Error.Message, "its data is left out"))
		})
	}
}
