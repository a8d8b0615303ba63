package engine_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/engine"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/transport"
	busmem "github.com/quipu-journal/quipu/transport/memory"
	"github.com/quipu-journal/quipu/transport/transporttest"
	"github.com/quipu-journal/quipu/wire"
	"github.com/quipu-journal/quipu/workers"
)

// P29, C8: a key is used again after its job has expired, while a message of that job is still
// around. The message counts as the first job's, and the second job's ids share nothing with
// it.
func TestP29KeyUsedAgainWhileMessagesAreAbout(t *testing.T) {
	each(t, func(t *testing.T, cfg engine.Config) {
		var mu sync.Mutex
		asked := map[string]bool{} // requests
		late := make(chan struct{})
		reg := workers.New()
		workers.HandleRaw(reg, "late", func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
			mu.Lock()
			asked[workers.Info(ctx).Request] = true
			first := len(asked) == 1
			mu.Unlock()
			if first {
				<-late // the handler ignores its context
				return json.RawMessage(`"the first's"`), nil
			}
			return json.RawMessage(`"the second's"`), nil
		})
		r := start(t, cfg, busmem.Config{Seed: 1}, nil, reg)
		r.deploy(`
flow: brief
version: "1"
expire: 1s
output: {from: "${ work.output }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: late}
transitions: {start: [work]}
`)
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		go func() { _ = engine.Retain(ctx, r.store, nil, r.eng.Config().Logger) }()
		first := r.run("brief", "k", `{}`)
		for len(r.asked(&mu, asked)) == 0 {
			time.Sleep(time.Second) // the bubble's clock
		}
		r.interrupt(first, collation.InterruptOrder{Code: 410, Throw: true, Reason: "x"}, "")
		r.ended([]journal.JobID{first})
		time.Sleep(5 * time.Minute)
		_, err := r.store.FindJob(ctx, "k")
		require.ErrorIs(t, err, store.ErrNotFound, "it has expired")
		second := r.run("brief", "k", `{}`)
		require.NotEqual(t, first, second)
		require.EqualValues(t, 2, r.view(second).Generation)
		close(late)
		r.output(second, `{"from":"the second's"}`)
		time.Sleep(time.Minute)
		require.Len(t, r.asked(&mu, asked), 2, "the second has a request of its own")
		require.Empty(t, r.letters())
	})
}

func (r *rig) asked(mu *sync.Mutex, asked map[string]bool) []string {
	mu.Lock()
	defer mu.Unlock()
	var out []string
	for g := range asked {
		out = append(out, g)
	}
	return out
}

func (r *rig) letters() []store.DeadView {
	r.t.Helper()
	out, err := r.store.DeadLetters(context.Background(), store.DeadFilter{All: true, Limit: 100})
	require.NoError(r.t, err)
	return out
}

// hint puts a message on the bus, as any engine might have sent it.
func (r *rig) hint(to transport.Destination, h wire.Hint) {
	r.t.Helper()
	r.hints++
	g, err := journal.ParseGUID(h.Row)
	require.NoError(r.t, err)
	require.NoError(r.t, transporttest.Publish(context.Background(), r.bus, transport.Message{
		To: to, Header: transport.Header{GUID: g, Publication: r.hints, Epoch: r.eng.Publisher().Epoch.Load()}, Body: wire.Encode(&h),
	}))
}

// T3, C5: a message of a job that never existed becomes a dead letter; a start whose order was
// cancelled does not.
func TestT3MessagesWithoutAJob(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, engine.Config{}, busmem.Config{Seed: 1}, nil, handlers())
		nobody := journal.JobID{1, 6: 0x80, 8: 0x80}
		h := wire.Hint{Job: nobody.String(), Row: nobody.String(), DAD: ",0"}
		n := 0 // number of dead letters
		for _, kind := range []journal.MessageKind{
			journal.MessageOutcome, journal.MessageWakeUp, journal.MessageCycle, journal.MessageLeg1,
		} {
			h.Kind, h.Activity = kind, "a"
			r.hint(transport.ToLane(0), h)
			time.Sleep(time.Minute) // the bubble's clock
			n++
			require.Len(t, r.letters(), n, "%s", kind)
			require.Equal(t, "foreign", r.letters()[0].Letter.Reason)
		}
		h.Kind, h.Activity, h.Flow, h.Version = journal.MessageStart, "start", "order", "1"
		r.hint(transport.ToStart(), h)
		time.Sleep(time.Minute)
		require.Len(t, r.letters(), n+1, "a job's own start comes after its inception")
		h.Activity, h.Flow, h.Version = "", "", ""
		r.hint(transport.ToStart(), h)
		for _, kind := range []journal.MessageKind{journal.MessageSignal, journal.MessageInterrupt} {
			h.Kind = kind
			r.hint(transport.ToLane(0), h)
		}
		time.Sleep(time.Minute)
		require.Len(t, r.letters(), n+1, "a child's order can be taken back, or refused, a signal be delivered")
		require.Zero(t, r.bus.Len(transport.ToStart())+r.bus.Len(transport.ToLane(0)))
	})
}

// W11: when a tombstone has ended, jobs begin above its generation, whether or not their key
// was known.
func TestW11Floor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, engine.Config{}, busmem.Config{Seed: 1}, nil, workers.New())
		r.deploy(`
flow: brief
version: "1"
expire: 1s
activities: {start: {type: trigger}}
`)
		r.ended([]journal.JobID{r.run("brief", "k", `{}`)})
		time.Sleep(time.Minute)
		for more := true; more; {
			var err error
			more, err = r.store.Expire(t.Context(), 100)
			require.NoError(t, err)
		}
		_, err := r.store.Retire(t.Context(), nil)
		require.NoError(t, err)
		r.store.Advance(store.TombstoneAge)
		time.Sleep(time.Minute)
		_, err = r.store.Expire(t.Context(), 100)
		require.NoError(t, err)
		for _, key := range []string{"new", "k", "newer"} {
			id := r.run("brief", key, `{}`)
			require.EqualValues(t, 2, r.view(id).Generation, key)
			r.ended([]journal.JobID{id})
		}
	})
}
