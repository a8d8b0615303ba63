package memstore_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// asked returns a store with a job whose request is leased.
func asked(t *testing.T) (*memstore.Store, store.Lease) {
	t.Helper()
	s := memstore.New(memstore.Config{})
	_, err := s.Deploy(t.Context(), next, definition.Canonical(), true)
	require.NoError(t, err)
	id := start(t, s, "k")
	c := open(t, s)
	plan := touch(load(t, c, id).States[id])
	request := journal.GUID{7}
	plan.Plan.Insert = []collation.Row{{
		GUID: request, Job: id, Kind: journal.MessageRequest, Turn: 1, Attempt: 1, NextAt: 1,
	}}
	require.NoError(t, c.Commit(t.Context(), []store.Chained{plan}))
	own, err := s.OpenSession(t.Context(), store.Process{Name: "own", Lease: time.Hour})
	require.NoError(t, err)
	lease, err := s.Lease(t.Context(), id, request, 1, "w", own.ID())
	require.NoError(t, err)
	return s, lease
}

func pay(key byte) journal.Effect {
	return journal.Effect{Key: journal.Digest{key}, Name: "pay", Class: store.ClassTx, Turn: 1}
}

// next is the flow of definition.
var (
	definition, _ = flow.Parse("next.yaml", []byte(`{flow: next, version: "1", activities: {start: {type: trigger}}}`))
	next          = journal.FlowRef{Name: "next", Version: "1", Digest: journal.Digest(definition.Digest())}
)

// begins returns a body that adds 1 to a value and begins a job with the number of the attempt in
// its input.
func begins(s *memstore.Store, tx any, attempt int) store.TxEnd {
	x := tx.(*memstore.EffectTx)
	n, _ := strconv.Atoi(x.Get("n"))
	x.Put("n", strconv.Itoa(n+1))
	text := strconv.Itoa(attempt)
	c, err := engine.NewCommitter(context.Background(), engine.Config{Store: s, Space: "memory"})
	if err == nil {
		_, err = c.StartTx(context.Background(), x,
			store.Start{Flow: next, Trigger: "start", Key: "after-" + text, Input: []byte(text)})
	}
	if err == nil {
		_, err = c.SignalTx(context.Background(), x, collation.Signal{
			GUID: journal.GUID{9, byte(attempt)}, Topic: "t", Key: "k", Code: 200, Payload: []byte(text),
		})
	}
	if err != nil {
		panic(err)
	}
	return store.TxEnd{Result: []byte(text)}
}

// P24: the commit of the first attempt conflicts. Only the second one's follow-ups exist, once.
func TestP24TxConflict(t *testing.T) {
	t.Parallel()
	s, l := asked(t)
	attempts := 0
	row, err := driven(s).TxEffect(t.Context(), l, pay(1), func(ctx context.Context, tx any) (store.TxEnd, error) {
		attempts++
		end := begins(s, tx, attempts)
		if attempts == 1 { // another commits in between
			_, err := driven(s).TxEffect(ctx, l, pay(2), func(_ context.Context, tx any) (store.TxEnd, error) {
				return begins(s, tx, 100), nil
			})
			require.NoError(t, err)
		}
		return end, nil
	})
	require.NoError(t, err)
	require.Equal(t, "2", string(row.Result))
	require.Equal(t, "2", s.Value("n"), "the other's and this one's, none lost")
	follows(t, s, 1, false)
	follows(t, s, 2, true)
	follows(t, s, 100, true)
	_, err = driven(s).TxEffect(t.Context(), l, pay(1), func(context.Context, any) (store.TxEnd, error) { panic("it has an outcome") })
	require.NoError(t, err)
}

// follows says whether the follow-ups of an attempt exist, once.
func follows(t *testing.T, s *memstore.Store, attempt int, there bool) {
	t.Helper()
	_, err := s.FindJob(t.Context(), "after-"+strconv.Itoa(attempt))
	require.Equal(t, there, err == nil)
	told, err := driven(s).Signal(t.Context(),
		&collation.Signal{GUID: journal.GUID{9, byte(attempt)}, Topic: "t", Key: "k", Payload: []byte(`1`)}, collation.Mode{})
	require.NoError(t, err)
	require.Equal(t, there, told.Duplicate)
}

// P25, P26: an attempt that ends without a result leaves no follow-ups and no writes.
func TestP25TxFails(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func() (store.TxEnd, error){
		"error":    func() (store.TxEnd, error) { return store.TxEnd{}, errors.New("as told") },
		"refused":  func() (store.TxEnd, error) { return store.TxEnd{Error: &journal.Failure{Class: "business"}}, nil },
		"not done": func() (store.TxEnd, error) { return store.TxEnd{Error: &journal.Failure{}, NotDone: true}, nil },
	} {
		s, l := asked(t)
		_, _ = driven(s).TxEffect(t.Context(), l, pay(1), func(_ context.Context, tx any) (store.TxEnd, error) {
			begins(s, tx, 1)
			return end()
		})
		require.Empty(t, s.Value("n"), name)
		follows(t, s, 1, false)
	}
	s, l := asked(t)
	stale := l
	stale.Fence++
	_, err := driven(s).TxEffect(t.Context(), stale, pay(1), func(_ context.Context, tx any) (store.TxEnd, error) {
		return begins(s, tx, 1), nil
	})
	require.ErrorIs(t, err, store.ErrStale)
	require.Empty(t, s.Value("n"))
	follows(t, s, 1, false)
}

// A body that always conflicts with others gives up.
func TestTxConflictsForEver(t *testing.T) {
	t.Parallel()
	s, l := asked(t)
	n := byte(1)
	_, err := driven(s).TxEffect(t.Context(), l, pay(1), func(ctx context.Context, tx any) (store.TxEnd, error) {
		end := begins(s, tx, 1)
		n++
		_, err := driven(s).TxEffect(ctx, l, pay(n), func(_ context.Context, tx any) (store.TxEnd, error) {
			return begins(s, tx, 100+int(n)), nil
		})
		require.NoError(t, err)
		return end, nil
	})
	require.ErrorAs(t, err, new(*store.TxError))
	require.Equal(t, "5", s.Value("n"), "as often as it was tried")
	follows(t, s, 1, false)
}
