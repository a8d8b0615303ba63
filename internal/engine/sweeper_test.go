package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// dim is a bus on which some streams do not answer.
type dim struct {
	transport.Bus
	away  map[transport.Kind]bool
	asked []transport.Kind
}

func (b *dim) Oldest(_ context.Context, d transport.Destination) (int64, bool, error) {
	b.asked = append(b.asked, d.Kind)
	if b.away[d.Kind] {
		return 0, false, transport.ErrUnavailable
	}
	return 0, false, nil
}

// T2: a stream that cannot be read delays only the messages that it may hold, and is asked
// once.
func TestT2BlindLookHoldsUpNoOthers(t *testing.T) {
	t.Parallel()
	row := func(g byte, kind journal.MessageKind, publication int) store.DueRow {
		return store.DueRow{
			Job: journal.JobID{3: g}, GUID: journal.GUID{g}, Kind: kind, Topic: "t", Publication: publication,
			PublishedAt: 1, Now: 1_000_000,
		}
	}
	due := []store.DueRow{
		row(1, journal.MessageStart, 1), row(2, journal.MessageStart, 1), row(3, journal.MessageLeg1, 1),
		row(4, journal.MessageWakeUp, 0), row(5, journal.MessageRequest, 1), row(6, journal.MessageStart, 0),
	}
	require.NotEqual(t, wire.LaneOf(due[2].Job, DefaultLanes), wire.LaneOf(due[4].Job, DefaultLanes))
	for _, c := range []struct {
		away  []transport.Kind
		sent  []byte
		asked int
	}{
		{nil, []byte{1, 2, 3, 4, 5, 6}, 4},
		{[]transport.Kind{transport.Start}, []byte{3, 4, 5, 6}, 4},
		{[]transport.Kind{transport.Work}, []byte{1, 2, 3, 4, 6}, 3},
		{[]transport.Kind{transport.Lane}, []byte{1, 2, 4, 6}, 3},
		{[]transport.Kind{transport.Start, transport.Lane, transport.Work}, []byte{4, 6}, 3},
	} {
		bus := &dim{away: map[transport.Kind]bool{}}
		for _, k := range c.away {
			bus.away[k] = true
		}
		cfg, err := Config{Bus: bus, Store: &queue{}, Space: "test"}.withDefaults()
		require.NoError(t, err)
		s := &sweeper{e: &Engine{cfg: cfg, pub: &Publisher{Lanes: cfg.Lanes}}}
		claims, err := s.decide(t.Context(), due)
		require.Equal(t, len(c.away) > 0, err != nil)
		var sent []byte
		for _, claim := range claims {
			require.True(t, claim.Send)
			sent = append(sent, claim.Row.GUID[0])
		}
		require.Equal(t, c.sent, sent, "%v away", c.away)
		require.Len(t, bus.asked, c.asked, "%v away", c.away)
	}
}

// T2: more due rows than one look takes, all in a stream that cannot be read, delay no timer
// behind them.
func TestT2BlindRowsDoNotFillEveryLook(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		st := &queue{next: map[store.DueRow]time.Time{}}
		for n := range sweepLimit + 1 {
			r := store.DueRow{
				Kind: journal.MessageRequest, Topic: "t", Publication: 1, GUID: journal.GUID{byte(n), byte(n >> 8)},
			}
			st.next[r] = time.Now()
		}
		timer := store.DueRow{Kind: journal.MessageWakeUp, Job: journal.JobID{1}}
		st.next[timer] = time.Now().Add(time.Second)
		_, stop := sweeps(t, Config{Bus: &dim{away: map[transport.Kind]bool{transport.Work: true}}, Store: st})
		time.Sleep(3 * time.Second) // the bubble's clock
		stop()
		require.Equal(t, []store.DueRow{timer}, st.sent)
	})
}

// W9: the sweeper looks when it is told that something is due, and when something that was
// committed here is due, long before its next look.
func TestW9TheSweeperIsTold(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(e *Engine, at time.Time){
		"announced": func(e *Engine, at time.Time) { time.Sleep(time.Until(at)); e.committer.alarm.ring() },
		"committed": func(e *Engine, at time.Time) {
			time.Sleep(time.Until(at) - time.Millisecond)
			e.committer.alarm.set(at)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				at := time.Now().Add(10 * time.Second)
				timer := store.DueRow{Kind: journal.MessageWakeUp, Job: journal.JobID{1}}
				st := &queue{next: map[store.DueRow]time.Time{timer: at}}
				e, stop := sweeps(t, Config{Bus: &dim{}, Store: st, Sweep: time.Hour})
				tell(e, at)
				time.Sleep(5 * time.Millisecond) // the bubble's clock
				stop()
				require.Equal(t, []store.DueRow{timer}, st.sent)
			})
		})
	}
}

// W9: an announcement that is lost, or that was not made because a process makes one a second,
// delays nothing for long: for two seconds after an announcement the sweeper looks each 200 ms, and
// otherwise once a second.
func TestW9AnAnnouncementIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ announced, due, within time.Duration }{
		"idle":                     {0, time.Minute, 11 * DefaultSweep / 10},
		"soon after another":       {time.Minute, time.Minute + 10*time.Millisecond, 11 * brisk / 10},
		"not so soon, but in time": {time.Minute, time.Minute + 1900*time.Millisecond, 11 * brisk / 10},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				row := store.DueRow{Kind: journal.MessageWakeUp, Job: journal.JobID{1}}
				e, stop := sweeps(t,
					Config{Bus: &dim{}, Store: &queue{next: map[store.DueRow]time.Time{row: time.Now().Add(c.due)}}})
				time.Sleep(c.announced) // the bubble's clock
				e.committer.alarm.ring()
				time.Sleep(c.due + c.within - c.announced)
				stop()
				require.Equal(t, []store.DueRow{row}, e.cfg.Store.(*queue).sent)
			})
		})
	}
}

// W9: the engine listens for announcements, again after the connection has ended.
func TestW9AnnouncementsAreHeard(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		st := &herald{}
		cfg, err := Config{Bus: &dim{}, Store: st, Space: "test"}.withDefaults()
		require.NoError(t, err)
		e := &Engine{cfg: cfg, committer: idle()}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.listen(ctx) }()
		for range 3 { // each time on another connection
			<-e.committer.alarm.rung
			_, now := e.committer.alarm.take()
			require.True(t, now)
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// herald is a store that announces once and whose connection then ends.
type herald struct{ store.Engine }

func (*herald) Announced(_ context.Context, told func()) error {
	told()
	return store.ErrUnavailable
}

// sweeps runs the sweeper of an engine until stop.
func sweeps(t *testing.T, cfg Config) (e *Engine, stop func()) {
	t.Helper()
	cfg.Space = "test"
	cfg, err := cfg.withDefaults()
	require.NoError(t, err)
	e = &Engine{cfg: cfg, pub: &Publisher{Lanes: cfg.Lanes}, committer: idle()}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&sweeper{e: e}).run(ctx) }()
	return e, func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// idle is a committer that commits nothing.
func idle() *Committer { return &Committer{cache: newCache(0), alarm: newAlarm()} }

// queue is a store of due rows.
type queue struct {
	store.Engine
	next map[store.DueRow]time.Time
	sent []store.DueRow
	look func(ctx context.Context) error // before each one; nil: nothing
}

func (q *queue) Processes(context.Context) ([]store.ProcessView, error) { return nil, nil }

func (s *queue) Late(context.Context, journal.MessageKind, int) ([]collation.RowKey, error) {
	return nil, nil
}

func (s *queue) Due(ctx context.Context, limit int) ([]store.DueRow, store.Timing, error) {
	if s.look != nil {
		if err := s.look(ctx); err != nil {
			return nil, store.Timing{}, err
		}
	}
	var due []store.DueRow
	for r, at := range s.next {
		if !at.After(time.Now()) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b store.DueRow) int { return s.next[a].Compare(s.next[b]) })
	return due[:min(len(due), limit)], store.Timing{}, nil
}

func (s *queue) Claim(_ context.Context, claims []store.Claim) ([]store.Outgoing, error) {
	for _, c := range claims {
		s.next[c.Row] = time.Now().Add(c.Again)
		if c.Send {
			s.sent = append(s.sent, c.Row)
		}
	}
	return nil, nil
}

// T2: a sweeper whose database falls silent sweeps again.
func TestT2SweepIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		looks, again := 0, make(chan struct{})
		began := time.Now()
		_, stop := sweeps(t, Config{Bus: &dim{}, Store: &queue{look: func(ctx context.Context) error {
			switch looks++; looks {
			case 1:
				<-ctx.Done()
			case 2:
				close(again)
			}
			return ctx.Err()
		}}})
		<-again
		require.Less(t, time.Since(began), 2*sweepTime)
		stop()
	})
}
