package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
)

// hold has another transaction hold a key until it is let go.
func (c *counter) hold(key string) (letGo func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[string]chan struct{}{}
	}
	free := make(chan struct{})
	c.held[key] = free
	return func() { close(free) }
}

// holds is the hook of a database whose keys others hold: a batch is soon refused, and a patient
// commit waits.
func (c *counter) holds(plans []store.Chained, patient bool) error {
	for i := range plans {
		e := plans[i].Plan.Entry
		if e == nil {
			continue
		}
		c.mu.Lock()
		free := c.held[e.Key]
		c.mu.Unlock()
		if free == nil {
			continue
		}
		if patient {
			<-free
		}
		select {
		case <-free:
		case <-time.After(100 * time.Millisecond): // the bubble's clock
			c.busy.Add(1)
			return store.ErrBusy
		}
	}
	return nil
}

// C10, W3: a start whose key another transaction holds for longer than all attempts may take says
// which key, and what to do.
func TestW3AStartThatWaitedInVainNamesItsKey(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Committers: 1})
		c.cfg.Store.(*hooked).held = func(_ []store.Chained, patient bool) error {
			if !patient {
				return store.ErrBusy
			}
			time.Sleep(transactTime) // the bubble's clock
			return fmt.Errorf("%w: %w", store.ErrUnavailable, context.DeadlineExceeded)
		}
		s := c.requests(1)
		s[0].Key = "mine"
		err := c.Start(t.Context(), s)[0].Err
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, `start: another transaction holds "key mine", and did not end in 5 attempts: commit it or roll it back`)
	})
}

// W3: keys that callers' transactions hold delay the starts of these keys alone, however many
// callers want them. A start that shared a batch with them goes on, and so does the start of a key
// that is held for a shorter time.
func TestW3HeldKeysDelayNobodyElse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Committers: 1})
		named := func(key string) []store.Start {
			s := c.requests(1)
			s[0].Key = key
			return s
		}
		letGo := c.hold("held")
		wanted := make(chan store.Started, 3*DefaultAside)
		for range cap(wanted) { // each in a batch of its own
			go func() { wanted <- c.Start(t.Context(), named("held"))[0] }()
			time.Sleep(time.Second) // the bubble's clock
		}
		require.EqualValues(t, 1, c.busy.Load(), "what is known to be held costs no other batch its time")
		brief := c.hold("brief")
		short := make(chan store.Started)
		go func() { short <- c.Start(t.Context(), named("brief"))[0] }()
		time.Sleep(time.Second)
		brief()
		require.NoError(t, (<-short).Err)

		var others []func()
		starts := c.requests(200)
		for i := range 2 * DefaultAside {
			starts[i].Key = fmt.Sprint("held", i)
			others = append(others, c.hold(starts[i].Key))
		}
		letAllGo := sync.OnceFunc(func() {
			for _, let := range append(others, letGo) {
				let()
			}
		})
		defer letAllGo() // so that a failure ends the test
		free := starts[2*DefaultAside:]
		late := make(chan store.Started, 2*DefaultAside)
		for i := range cap(late) {
			go func() { late <- c.Start(t.Context(), starts[i:i+1])[0] }()
		}
		began := time.Now()
		for _, o := range c.behindEachOther(free) {
			require.NoError(t, o.Err)
		}
		require.Less(t, time.Since(began), 10*time.Second, "each held key costs them 0.1 s")
		require.Empty(t, late)
		require.Empty(t, wanted)
		letAllGo()
		begun := 0
		for range cap(wanted) {
			if o := <-wanted; o.Err == nil {
				begun++
			}
		}
		require.Equal(t, 1, begun, "the others found its job")
		for range cap(late) {
			require.NoError(t, (<-late).Err)
		}
	})
}

// T10, W3: a committer that shall end carries what was queued by then, and no more, however many
// callers go on calling. All others learn that nothing was done.
func TestW3TheEndUnderAFlood(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Committers: 1, MaxBatch: 10})
		gate := make(chan struct{})
		c.failing(func(op string) error {
			if op == "commit" {
				<-gate
				time.Sleep(time.Millisecond) // the bubble's clock: meanwhile all callers call again
			}
			return nil
		})
		queued := make(chan store.Started, 30)
		for i := range cap(queued) {
			go func() { queued <- c.Start(t.Context(), c.requests(i + 1)[i:])[0] }()
		}
		synctest.Wait()
		c.stop()
		close(gate)
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				for n := range 1000 {
					start := c.requests(1)
					start[0].Key = fmt.Sprint("late", i, "-", n)
					if err := c.Start(t.Context(), start)[0].Err; err != nil {
						assert.ErrorIs(t, err, ErrClosed)
						assert.ErrorIs(t, err, store.ErrUnavailable)
						return
					}
				}
				t.Error("it never ends")
			})
		}
		callers.Wait()
		<-c.gone
		for range cap(queued) {
			require.NoError(t, (<-queued).Err)
		}
	})
}

// T10, W3: at the end a call that waits for another transaction is not waited for, unless it is
// under way. It is told that nothing was done.
func TestW3TheEndDoesNotWaitForOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := committing(t, Config{Aside: 1})
		free, never := c.hold("k0"), c.hold("k1")
		defer never()
		ends := make([]chan store.Started, 2)
		for i := range ends {
			ends[i] = make(chan store.Started, 1)
			go func() { ends[i] <- c.Start(t.Context(), c.requests(2)[i:i+1])[0] }()
			time.Sleep(time.Second) // the bubble's clock
		}
		c.stop()
		require.ErrorIs(t, (<-ends[1]).Err, ErrClosed)
		free()
		require.NoError(t, (<-ends[0]).Err)
		<-c.gone
	})
}
