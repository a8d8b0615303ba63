package attacks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// unsigned runs a space without keys, in which one job waits for a person.
func unsigned(t *testing.T) (g *target, rt *quipu.Runtime, job quipu.Job) {
	t.Helper()
	g = newTarget(t)
	owner := g.open(nil)
	require.NoError(t, owner.Keys().Switch(t.Context(), false))
	reg := workers.New()
	workers.Handle(reg, "pay.charge", func(ctx context.Context, _ int) (int, error) {
		return effects.Do(ctx, "charge", func(context.Context) (int, error) { return 0, errors.New("cut off") })
	})
	said := &devtest.Log{}
	rt = g.open(reg, func(c *quipu.Config) {
		c.Roles, c.Logger = []quipu.Role{quipu.RoleEngine, quipu.RoleWorkers}, logTo(said)
	})
	require.Contains(t, said.String(), "the space runs without MACs", "the preflight says it (S3)")
	g.Deploy(rt, payFlow)
	g.Run(rt)
	job, err := rt.Start(t.Context(), "pay", "till", 7)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = rt.Wait(ctx, job, quipu.UntilParked(true))
	require.ErrorAs(t, err, new(*quipu.ParkedError))
	return g, rt, job
}

// strange is a message of somebody who has the bus and nothing else: it cannot be read, or it is
// of a job that is not here. Some name a job and a request of the space.
func strange(i int, job quipu.Job) *natsgo.Msg {
	msg := &natsgo.Msg{Subject: "quipu.shop.start", Data: []byte("{"), Header: natsgo.Header{}}
	m := transport.Message{To: transport.ToWork("pay.charge"), Header: transport.Header{
		GUID: [16]byte{1, byte(i), byte(i >> 8)}, Publication: 1, Turn: 1, Epoch: 1,
	}}
	nobody := journal.JobID{1, byte(i), byte(i >> 8), 6: 0x80, 8: 0x80}
	switch i % 4 {
	case 0:
		return msg
	case 1:
		msg.Subject = "quipu.shop.work.pay.charge"
		return msg
	case 2:
		m.To = transport.ToLane(i % 16)
		m.Body = wire.Encode(&wire.Hint{
			Kind: journal.MessageWakeUp, Job: nobody.String(), Row: nobody.String(), Activity: "a", DAD: ",0",
		})
	default: // its topic is another one
		m.Body = wire.Encode(&wire.Request{
			Space: "shop", Job: job.ID.String(), Key: "till", Generation: 1, Flow: "pay", Version: "1",
			Activity: strings.Repeat("a", 5000), DAD: ",0,0", Topic: "ship", Request: journal.GUID(m.Header.GUID).String(),
			Turn: 1, Attempt: 1, Attempts: 1, Input: []byte("1000"),
		})
	}
	msg.Subject, msg.Data = "quipu.shop."+m.To.String(), m.Body
	transport.EncodeHeader(&m, func(name, value string) { msg.Header[name] = []string{value} })
	return msg
}

// A stranger floods a space without keys with messages that nobody can handle. Retention keeps
// the newest of their dead letters, and counts the others. A job's dead letter, older than all of
// them, stays, and can be decided on (S15).
func TestDeadLetterFloodWithoutKeys(t *testing.T) {
	t.Parallel()
	g, rt, job := unsigned(t)
	nc, err := natsgo.Connect(g.NATS.URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	const flood = 4 * store.MaxUnclaimed
	for i := range flood {
		_, err := js.PublishMsgAsync(strange(i, job))
		require.NoError(t, err)
		if i%1000 == 999 { // a busy server takes longer than the client waits for room
			devtest.Await(t, "the acks of a thousand messages", js.PublishAsyncComplete())
		}
	}
	letters := func() (n int, dropped int64) {
		f := quipu.DeadLetterFilter{All: true, Limit: store.MaxPage}
		for {
			page, err := rt.Operator().DeadLetters(t.Context(), f)
			require.NoError(t, err)
			if n += len(page); len(page) < f.Limit {
				break
			}
			f.Before = page[len(page)-1].ID
		}
		dropped, err := rt.Operator().DroppedLetters(t.Context())
		require.NoError(t, err)
		return n, dropped
	}
	require.Eventually(t, func() bool { n, _ := letters(); return n > flood }, patience, 50*time.Millisecond)
	g.Run(g.open(nil, func(c *quipu.Config) { c.NATS, c.Roles = "", []quipu.Role{quipu.RoleRetention} }))
	require.Eventually(t, func() bool {
		n, _ := letters()
		return n <= store.MaxUnclaimed+1
	}, patience, 50*time.Millisecond)
	n, dropped := letters()
	require.Equal(t, store.MaxUnclaimed+1, n)
	require.GreaterOrEqual(t, dropped, int64(flood-store.MaxUnclaimed), "a message that came again has two")

	parked, err := rt.Operator().DeadLetters(t.Context(), quipu.DeadLetterFilter{Reason: "parked"})
	require.NoError(t, err)
	require.Len(t, parked, 1)
	require.NoError(t, rt.Operator().Decide(t.Context(),
		quipu.Decision{DeadLetter: parked[0].ID, Verdict: quipu.Done, Result: 7, Who: "ann"}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := quipu.WaitAs[int](ctx, rt, job)
	require.NoError(t, err)
	require.Equal(t, 7, out)
}
