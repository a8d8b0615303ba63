package engine

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// timers is a store that has only timers, due one after another.
type timers struct {
	store.Engine
	due    []time.Time // due times of those that were not sent, sorted
	sent   int
	looks  int
	late   time.Duration
	calls  atomic.Int32 // in progress
	beside bool         // another call was in progress
}

func (s *timers) Late(context.Context, journal.MessageKind, int) ([]collation.RowKey, error) {
	return nil, nil
}

func (s *timers) Due(_ context.Context, limit int) ([]store.DueRow, store.Timing, error) {
	defer s.enter()()
	s.looks++
	var out []store.DueRow
	for i, at := range s.due {
		if len(out) == limit || at.After(time.Now()) {
			break
		}
		s.late = max(s.late, time.Since(at))
		out = append(out, store.DueRow{
			Job: numbered(s.sent + i), GUID: journal.GUID(numbered(s.sent + i)), Kind: journal.MessageWakeUp,
		})
	}
	if len(out) == 0 {
		return nil, store.Timing{}, nil
	}
	return out, store.Timing{}, nil
}

func (s *timers) Claim(_ context.Context, claims []store.Claim) ([]store.Outgoing, error) {
	defer s.enter()()
	out := make([]store.Outgoing, len(claims))
	for i, c := range claims {
		out[i].Row = collation.Row{Job: c.Row.Job, GUID: c.Row.GUID, Kind: c.Row.Kind, DAD: ",0", Publication: 1}
	}
	s.due, s.sent = s.due[len(claims):], s.sent+len(claims)
	return out, nil
}

// enter notes calls that are in progress at the same time.
func (s *timers) enter() (leave func()) {
	s.beside = s.calls.Add(1) > 1 || s.beside
	time.Sleep(5 * time.Millisecond) // the bubble's clock: what a database takes
	return func() { s.calls.Add(-1) }
}

// lanes is a bus that counts what is sent.
type lanes struct {
	transport.Bus
	sent, most int
}

func (l *lanes) Send(_ context.Context, msgs []transport.Message, _ func(int, error)) error {
	for i := range msgs {
		if err := msgs[i].Validate(0); err != nil {
			return err
		}
	}
	l.sent, l.most = l.sent+len(msgs), max(l.most, len(msgs))
	return nil
}

func numbered(n int) (id journal.JobID) {
	binary.BigEndian.PutUint32(id[:], uint32(n)*2654435761)
	binary.BigEndian.PutUint32(id[12:], uint32(n)+1)
	return id
}

// T2, T11: 100 000 timers that are due within a minute are sent in bounded batches, in time,
// one batch at a time.
func TestT11ManyTimersAreNoStorm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const many = 100_000
		st := &timers{}
		for n := range many {
			st.due = append(st.due, time.Now().Add(time.Duration(n)*time.Minute/many))
		}
		bus := &lanes{}
		cfg, err := Config{Store: st, Bus: bus, Space: "test"}.withDefaults()
		require.NoError(t, err)
		e := &Engine{cfg: cfg, pub: &Publisher{
			Bus: bus, Flows: NewFlows(st), Space: "test", Lanes: cfg.Lanes, Observer: observer.Nop{},
		}, committer: idle()}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute+time.Second)
		defer stop()
		require.NoError(t, (&sweeper{e: e}).run(ctx))
		require.Equal(t, many, st.sent)
		require.LessOrEqual(t, st.late, 250*time.Millisecond)
		require.Less(t, st.looks, 500, "a look each 200 ms, and one for each 1000 that are due at once")
		require.False(t, st.beside, "one call at a time")
		require.Equal(t, many, bus.sent)
		require.LessOrEqual(t, bus.most, store.MaxSweep)
	})
}
