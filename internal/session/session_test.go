package session_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/session"
	"github.com/quipu-journal/quipu/internal/store"
)

const lease = 3 * time.Second

// database is a store in memory that can be away, and whose leases the test sets.
type database struct {
	*memstore.Store
	mu       sync.Mutex
	away     bool
	lost     []store.LostLease
	asked    []store.Lease // by the last look
	returned []store.Lease
	held     []store.Lease
	answers  time.Duration // how long an answer takes
	connects time.Duration // and a connection, after one that broke
	broken   bool
}

// call is a call on the session's connection. One that is cut off breaks it.
func (d *database) call(ctx context.Context) error {
	d.mu.Lock()
	takes := d.answers
	if d.broken {
		takes += d.connects
	}
	d.mu.Unlock()
	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(takes):
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = err != nil
	return err
}

func newDatabase() *database {
	d := &database{}
	d.Store = memstore.New(memstore.Config{Fault: func(string) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.away {
			return errors.New("away")
		}
		return nil
	}})
	return d
}

func (d *database) set(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

func (d *database) OpenSession(ctx context.Context, p store.Process) (store.Session, error) {
	s, err := d.Store.OpenSession(ctx, p)
	return &looked{s, d}, err
}

func (d *database) HandBack(_ context.Context, l store.Lease) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return store.ErrUnavailable
	}
	d.returned = append(d.returned, l)
	return nil
}

func (d *database) handedBack() []store.Lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.returned
}

// look sets what later looks find, and returns what the last one asked about.
func (d *database) look(lost []store.LostLease) (asked []store.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = lost
	return d.asked
}

// looked is a session whose answers about leases come from the database.
type looked struct {
	store.Session
	d *database
}

func (s *looked) Renew(ctx context.Context, does store.Doing) ([]string, error) {
	if err := s.d.call(ctx); err != nil {
		return nil, err
	}
	return s.Session.Renew(ctx, does)
}

func (s *looked) Lost(ctx context.Context, leases []store.Lease) ([]store.LostLease, error) {
	if len(leases) == 0 {
		return nil, nil
	}
	if err := s.d.call(ctx); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.asked = leases
	return s.d.lost, nil
}

func (s *looked) Held(context.Context) ([]store.Lease, error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.d.held, nil
}

// keep runs a Keeper of a process until the test ends or stop is called.
func keep(t *testing.T, d *database, name string) (k *session.Keeper, stop func()) {
	k = session.New(session.Config{Store: d, Process: store.Process{Name: name, Lease: lease}})
	_, alive := k.Current()
	require.False(t, alive, "there is none before Run")
	ctx, cancel := context.WithCancel(context.Background())
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- k.Run(ctx, opened) }()
	<-opened
	stop = sync.OnceFunc(func() { cancel(); require.NoError(t, <-ended) })
	t.Cleanup(stop)
	return k, stop
}

func inBubble(t *testing.T, run func(t *testing.T, d *database)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { run(t, newDatabase()) })
}

// W8: a session lasts as long as it is renewed, and ends with its process.
func TestW8ASessionIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		k, stop := keep(t, d, "a")
		id, alive := k.Current()
		require.True(t, alive)
		time.Sleep(10 * lease)
		require.True(t, k.Alive(id), "for as long as it is renewed")
		require.False(t, k.Alive(id+1))
		stop()
		require.False(t, k.Alive(id))
		other, err := d.OpenSession(t.Context(), store.Process{Name: "b", Lease: lease})
		require.NoError(t, err)
		require.Greater(t, other.ID(), id)
	})
}

// W8: a process that could not renew for two thirds of the lease begins nothing and ends
// its handlers. If the database is back in time, the session goes on.
func TestW8WhatIsNotRenewedBeginsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		k, _ := keep(t, d, "a")
		id, _ := k.Current()
		told := make(chan error, 9)
		stop := k.Watch(func() (store.Lease, bool) { return store.Lease{}, false }, func(err error) { told <- err })
		defer stop()
		time.Sleep(lease + lease/9) // just after a renewal
		d.set(true)
		time.Sleep(lease / 2)
		require.True(t, k.Alive(id))
		require.Empty(t, told)
		time.Sleep(lease / 3)
		require.False(t, k.Alive(id))
		synctest.Wait()
		require.NotEmpty(t, told)
		require.ErrorIs(t, <-told, store.ErrStale)
		d.set(false)
		time.Sleep(lease / 2)
		require.True(t, k.Alive(id), "nobody has ended it")
	})
}

// W8: a renewal that fails is soon tried again, so that a lost connection alone does not cut a
// process off.
func TestW8OneRenewalThatFailsCutsNobodyOff(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		k, _ := keep(t, d, "a")
		told := make(chan error, 9)
		defer k.Watch(func() (store.Lease, bool) { return store.Lease{}, false }, func(err error) { told <- err })()
		time.Sleep(lease + lease/6) // between two renewals
		d.set(true)
		time.Sleep(lease / 3)
		d.set(false)
		for range 20 {
			time.Sleep(lease / 10)
			_, alive := k.Current()
			require.True(t, alive)
		}
		require.Empty(t, told)
	})
}

// W8: a database that answers slowly, and connects slowly, cuts nobody off for good: a renewal gets more
// time after one that was cut off, since that has cost its connection, too.
func TestW8ASlowDatabaseCutsNobodyOff(t *testing.T) {
	t.Parallel()
	for _, answers := range []time.Duration{lease / 4, lease * 2 / 5} {
		t.Run(answers.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *database) {
				k, _ := keep(t, d, "a")
				d.mu.Lock()
				d.answers, d.connects, d.broken = answers, lease/3, true
				d.mu.Unlock()
				time.Sleep(5 * lease)
				alive, looks := 0, 100
				for range looks {
					time.Sleep(lease / 20)
					if _, is := k.Current(); is {
						alive++
					}
				}
				require.Greater(t, alive, looks/2)
			})
		})
	}
}

// W8: a look at the leases of runs that takes long costs the session nothing.
func TestW8ASlowLookCutsNobodyOff(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		k, _ := keep(t, d, "a")
		id, _ := k.Current()
		defer k.Watch(func() (store.Lease, bool) { return store.Lease{Holder: "run"}, true }, func(error) {})()
		d.mu.Lock()
		d.answers = lease / 5 // so long take the renewal, and the look
		d.mu.Unlock()
		for range 100 {
			time.Sleep(lease / 10)
			require.True(t, k.Alive(id))
		}
	})
}

// W8, T10: a session that is not renewed is ended as soon as its lease is over, and not with the
// next renewal of others.
func TestW8ADeathIsNoticedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		keep(t, d, "a")
		time.Sleep(lease + lease/6) // between two renewals
		dies, err := d.Store.OpenSession(t.Context(), store.Process{Name: "dies", Lease: lease})
		require.NoError(t, err)
		time.Sleep(lease + 2*time.Millisecond)
		_, err = dies.Renew(t.Context(), store.Doing{})
		require.ErrorIs(t, err, store.ErrStale)
	})
}

// W8: a session that others have ended is followed by another, and every run of the
// process is told.
func TestW8ASessionThatWasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		k, _ := keep(t, d, "a")
		old, _ := k.Current()
		other, err := d.Store.OpenSession(t.Context(), store.Process{Name: "b", Lease: lease})
		require.NoError(t, err)
		told := make(chan error, 9)
		defer k.Watch(func() (store.Lease, bool) { return store.Lease{}, false }, func(err error) { told <- err })()
		d.set(true)
		for range 30 { // this renews b directly
			time.Sleep(lease / 6)
			d.set(false)
			_, err := other.Renew(t.Context(), store.Doing{})
			require.NoError(t, err)
			d.set(true)
		}
		d.set(false)
		time.Sleep(lease)
		id, alive := k.Current()
		require.True(t, alive)
		require.NotEqual(t, old, id)
		require.ErrorIs(t, <-told, store.ErrStale)
		k.Ended(id)
		require.False(t, k.Alive(id), "a commit has met its end")
		time.Sleep(lease)
		require.True(t, k.Alive(id), "it was wrong: the session is renewed")
	})
}

// W8: a renewal checks the leases of long runs, and reports the lost ones.
func TestW8RunsThatTakeLongLearnWhatBecameOfTheirRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		k, _ := keep(t, d, "a")
		told := make(chan error, 99)
		watch := func(holder string, held bool) (stop func()) {
			return k.Watch(func() (store.Lease, bool) { return store.Lease{Holder: holder}, held }, func(err error) {
				told <- err
			})
		}
		defer watch("none yet", false)()
		stop := watch("run", true)
		time.Sleep(2 * lease)
		require.Equal(t, []store.Lease{{Holder: "run"}}, d.look(nil), "what has no lease is not asked about")
		require.Empty(t, told)
		d.look([]store.LostLease{{Place: 0}})
		time.Sleep(lease)
		require.ErrorIs(t, <-told, store.ErrStale)
		stop()
		d.look(nil)
		defer watch("another", true)()
		time.Sleep(2 * lease)
		for len(told) > 0 {
			<-told
		}
		d.look([]store.LostLease{{Place: 0, Closed: true}})
		time.Sleep(lease)
		require.ErrorIs(t, <-told, store.ErrJobClosed)
	})
}

// W8: a lease that no run has is handed back as soon as the database accepts it.
func TestW8WhatNoRunHasIsHandedBack(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		k, _ := keep(t, d, "a")
		d.set(true)
		k.Return(store.Lease{Holder: "x"})
		time.Sleep(lease / 2)
		require.Empty(t, d.handedBack())
		d.set(false)
		time.Sleep(lease)
		require.Equal(t, []store.Lease{{Holder: "x"}}, d.handedBack())
	})
}

// W8: a request that the session holds and no run has is handed back after a while,
// whatever the cause.
func TestW8UnusedLeasesAreHandedBack(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		k, _ := keep(t, d, "a")
		d.mu.Lock()
		d.held = []store.Lease{{Holder: "run"}, {Holder: "stray"}}
		d.mu.Unlock()
		defer k.Watch(func() (store.Lease, bool) { return store.Lease{Holder: "run"}, true }, func(error) {})()
		time.Sleep(15 * lease)
		require.Empty(t, d.handedBack(), "its answer may be on its way")
		time.Sleep(7 * lease)
		require.Equal(t, []store.Lease{{Holder: "stray", Looks: true}}, d.handedBack(), "its answer may still be on its way (T2)")
	})
}

// W8: a process that starts while the database is away opens its session later.
func TestW8ASessionIsOpenedWhenTheDatabaseComes(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		d.set(true)
		k := session.New(session.Config{Store: d, Process: store.Process{Lease: lease}})
		ctx, cancel := context.WithCancel(t.Context())
		opened, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- k.Run(ctx, opened) }()
		time.Sleep(3 * lease)
		_, alive := k.Current()
		require.False(t, alive)
		d.set(false)
		<-opened
		_, alive = k.Current()
		require.True(t, alive)
		cancel()
		require.NoError(t, <-ended)
	})
}

// 7.6: the number of living engines is known as long as the session is renewed.
func TestEnginesAreCounted_7_6(t *testing.T) {
	inBubble(t, func(t *testing.T, d *database) {
		k, _ := keep(t, d, "a")
		require.Zero(t, k.Engines(), "no renewal has said so")
		_, err := d.OpenSession(t.Context(), store.Process{Name: "b", Engine: true, Lease: time.Hour})
		require.NoError(t, err)
		time.Sleep(lease)
		require.Equal(t, 1, k.Engines())
		d.set(true)
		time.Sleep(lease)
		require.Zero(t, k.Engines(), "it is cut off")
		d.set(false)
		time.Sleep(lease)
		require.Equal(t, 1, k.Engines())
	})
}
