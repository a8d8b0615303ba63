package examples_test

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport/nats"
)

const ackWait = 2 * time.Second

// openLabels is a space that often looks for lost messages: a request that only heartbeats keep must
// not look lost. Its workers have the rights on NATS that `quipu nats-permissions` prints for them, and
// nothing is refused to them (S4).
func openLabels(t *testing.T) *Space {
	t.Helper()
	rights, err := nats.RightsOf(nats.Config{Space: "default"}, nats.Worker, []string{"labels.print"})
	require.NoError(t, err)
	users := map[string]*server.User{"": {}, "labels": devtest.User(t, "labels", rights.String())}
	said := &devtest.Log{}
	t.Cleanup(func() { require.NotContains(t, said.String(), "Violation") })
	bus := devtest.NATSWith(t, dev.NATSOptions{
		Login: func(user, _ string) *server.User { return users[user] }, Log: slog.New(slog.NewTextHandler(said, nil)),
	})
	s := open(t, "javascript", func(c *quipu.Config) {
		c.NATS, c.Resend, c.Lease, c.AckWait = bus.URL(), ackWait/4, ackWait, ackWait
	})
	s.NATS = strings.Replace(s.NATS, "//", "//labels:secret@", 1)
	return s
}

func millis(name string, d time.Duration) string {
	return name + "=" + strconv.FormatInt(d.Milliseconds(), 10)
}

// answers returns the responses about the label in the job's journal.
func answers(t *testing.T, s *Space, key string) (out []*journal.Response) {
	t.Helper()
	job, err := s.Find(t.Context(), key)
	require.NoError(t, err)
	for e, err := range s.Journal(t.Context(), job) {
		require.NoError(t, err)
		if e.Activity == "print" && e.Response != nil {
			out = append(out, e.Response)
		}
	}
	return out
}

// T6, E8, E11: a worker without the library succeeds, is retried, and refuses; each is recorded
// as it answered.
func TestT6Answers(t *testing.T) {
	t.Parallel()
	dir := install(t)
	s := openLabels(t)
	p := launch(t, dir, s)
	s.Begin("label", "good", `{"address": "Lima", "grams": 1200}`)
	s.Begin("label", "jammed", `{"address": "Lima", "grams": 1200, "jams": 2}`)
	s.Begin("label", "broken", `{"address": "Lima", "grams": 1200, "jams": 9}`)
	s.Begin("label", "heavy", `{"address": "Oslo", "grams": 40000}`)
	s.Begin("label", "huge", `{"address": "`+strings.Repeat("x", wire.MaxInline)+`", "grams": 1}`)
	s.Begin("label", "wide", `{"address": "`+strings.Repeat("x", wire.MaxInline-40)+`", "grams": 1}`)

	number := p.until("run", "good").Request
	require.JSONEq(t, `{"label": {"label": "Lima / 1200 g", "copies": 1, "number": "`+dashless(number)+`"}, "freight": null}`,
		dashless(s.Output("good")))
	require.Contains(t, s.Output("jammed"), "Lima / 1200 g")
	require.JSONEq(t, `{"label": null, "freight": {"why": "40000 g is too heavy"}}`, s.Output("heavy"))
	require.Equal(t, 503, s.Failure("broken").Code)
	require.Equal(t, 413, s.Failure("huge").Code)
	require.Equal(t, 500, s.Failure("wide").Code)

	for key, runs := range map[string]int{"good": 1, "jammed": 3, "broken": 3, "heavy": 1, "huge": 1, "wide": 1} {
		turns := map[int]bool{}
		for _, e := range p.of("run", key) { // a turn may be asked for more than once (C9)
			require.Equal(t, e.Turn, e.Attempt, key)
			require.Equal(t, p.of("run", key)[0].Request, e.Request, "the key that a receiver dedupes on is the same on every attempt")
			turns[e.Turn] = true
		}
		require.Len(t, turns, runs, key)
		require.Len(t, answers(t, s, key), runs, key)
	}
	heavy := answers(t, s, "heavy")[0]
	require.Equal(t, journal.ResponseTerminal, heavy.Kind)
	require.Equal(t, "business", heavy.Error.Class)
	require.JSONEq(t, `{"most": 31500}`, string(heavy.Error.Data))
	require.Equal(t, "result_too_large", answers(t, s, "wide")[0].Error.Class)
	require.Equal(t, int64(100_000), answers(t, s, "jammed")[0].RetryAfter)
	p.end()
	p.smooth("busy")
}

func dashless(s string) string { return strings.ReplaceAll(s, "-", "") }

// T6: heartbeats alone keep a run of three ack waits: the request comes neither to a free worker
// nor a second time to its own.
func TestT6LongRunIsKept(t *testing.T) {
	t.Parallel()
	dir := install(t)
	s := openLabels(t)
	full := launch(t, dir, s, millis("LABEL_COPY_MS", ackWait/10), "QUIPU_CONCURRENCY=1")
	s.Begin("label", "parcel", `{"address": "Rome", "grams": 1, "copies": 30}`)
	full.until("run", "parcel")
	free := launch(t, dir, s)
	free.until("ready", "")
	require.Contains(t, s.Output("parcel"), `"copies":30`)
	require.Len(t, full.of("run", "parcel"), 1)
	require.Len(t, answers(t, s, "parcel"), 1)
	full.end()
	free.end()
	require.Empty(t, free.of("run", "parcel"))
	full.smooth()
	free.smooth()
}

// C9, E7: a request of a killed worker comes again after the ack wait. The second answer is
// recorded, once.
func TestC9KilledInTheMiddle(t *testing.T) {
	t.Parallel()
	dir := install(t)
	s := openLabels(t)
	first := launch(t, dir, s, millis("LABEL_COPY_MS", time.Hour))
	s.Begin("label", "parcel", `{"address": "Lima", "grams": 1200}`)
	before := first.until("run", "parcel")
	first.kill()
	second := launch(t, dir, s)
	require.Contains(t, s.Output("parcel"), "Lima / 1200 g")
	after := second.of("run", "parcel")
	require.Len(t, after, 1)
	require.Equal(t, before.Request, after[0].Request)
	require.Equal(t, []int{1, 1}, []int{after[0].Turn, after[0].Attempt}, "a run that was cut off is no failed attempt")
	require.Len(t, answers(t, s, "parcel"), 1)
	second.end()
}

// T10: a worker that is told to end finishes what it can and hands back the rest at once, so the
// other worker does not wait for the ack wait.
func TestT10Drain(t *testing.T) {
	t.Parallel()
	dir := install(t)
	s := openLabels(t)
	slow := launch(t, dir, s, millis("LABEL_COPY_MS", time.Second), millis("QUIPU_DRAIN_MS", 4*time.Second))
	s.Begin("label", "long", `{"address": "Rome", "grams": 1, "copies": 20}`)
	slow.until("run", "long")
	s.Begin("label", "short", `{"address": "Lima", "grams": 1}`)
	slow.until("run", "short")
	slow.end()
	require.Len(t, slow.of("answered", "short"), 1)
	require.Len(t, slow.of("handed back", "long"), 1)
	other := launch(t, dir, s, millis("LABEL_COPY_MS", time.Millisecond))
	require.Contains(t, s.Output("long"), "Rome / 1 g")
	require.Len(t, other.of("run", "long"), 1)
	require.Len(t, answers(t, s, "long"), 1)
	other.end()
}
