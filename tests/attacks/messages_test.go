package attacks

import (
	"context"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// counted is what a metric counts.
type counted struct {
	observer.Nop

	metric string
	n      atomic.Int64
}

func (c *counted) Count(metric string, n int64, _ ...string) {
	if metric == c.metric {
		c.n.Add(n)
	}
}

// till is a job whose charge waits in its handler until release is called. The engine and the
// worker are two processes.
type till struct {
	*target

	client  *quipu.Runtime
	nc      *natsgo.Conn
	js      jetstream.JetStream
	job     quipu.Job
	runs    atomic.Int64
	refused counted
	release func()
}

func newTill(t *testing.T) *till {
	t.Helper()
	p := &till{target: newTarget(t), refused: counted{metric: observer.MetricRefused}}
	began, open := make(chan struct{}), make(chan struct{})
	p.release = sync.OnceFunc(func() { close(open) })
	t.Cleanup(p.release)
	reg := workers.New()
	first := sync.OnceFunc(func() { close(began) })
	workers.Handle(reg, "pay.charge", func(ctx context.Context, amount int) (int, error) {
		p.runs.Add(1)
		first()
		select {
		case <-open:
		case <-ctx.Done():
		}
		return amount, nil
	})
	p.client = p.open(nil, func(c *quipu.Config) { c.Roles, c.Observer = []quipu.Role{quipu.RoleEngine}, &p.refused })
	p.Deploy(p.client, payFlow)
	p.Run(p.client)
	p.Run(p.open(reg, func(c *quipu.Config) { c.Roles, c.Observer = []quipu.Role{quipu.RoleWorkers}, &p.refused }))
	var err error
	p.job, err = p.client.Start(t.Context(), "pay", "till", 7)
	require.NoError(t, err)
	devtest.Await(t, "the handler", began)
	p.nc, err = natsgo.Connect(p.NATS.URL())
	require.NoError(t, err)
	t.Cleanup(p.nc.Close)
	p.js, err = jetstream.New(p.nc)
	require.NoError(t, err)
	return p
}

// ends releases the handler: the job ends with what its own handler said, in one run.
func (p *till) ends() {
	p.t.Helper()
	p.release()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	out, err := quipu.WaitAs[int](ctx, p.client, p.job)
	require.NoError(p.t, err)
	require.Equal(p.t, 7, out)
	require.Equal(p.t, int64(1), p.runs.Load())
	var letters int
	p.read("SELECT count(*) FROM quipu_shop.dead_letters", &letters)
	require.Zero(p.t, letters)
}

// read reads one row of the space.
func (p *till) read(query string, to ...any) {
	p.t.Helper()
	db := p.admin()
	defer db.Close(context.Background())
	require.NoError(p.t, db.QueryRow(p.t.Context(), query).Scan(to...))
}

// answer is a response to the charge of 1000, as its worker would send it.
func (p *till) answer(topic string) *transport.Message {
	p.t.Helper()
	var job, guid [16]byte
	p.read("SELECT job, guid FROM quipu_shop.dispatches WHERE kind = 'request'", &job, &guid)
	return &transport.Message{
		To: transport.ToLane(wire.LaneOf(job, 16)),
		Header: transport.Header{
			GUID: collation.ResponseGUID(guid, 1), Publication: 1, Turn: 1, Epoch: 1, Topic: topic,
		},
		Body: wire.Encode(&wire.Hint{
			Kind: journal.MessageResponse, Job: journal.JobID(job).String(), Row: journal.GUID(guid).String(),
			Activity: "charge", DAD: ",0,0", Turn: 1, Flow: "pay", Version: "1",
			Response: &wire.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte("1000")},
		}),
	}
}

// publish sends a message as somebody does who has the bus and nothing else.
func (p *till) publish(m *transport.Message) {
	p.t.Helper()
	msg := &natsgo.Msg{Subject: "quipu.shop." + m.To.String(), Header: natsgo.Header{}, Data: m.Body}
	transport.EncodeHeader(m, func(name, value string) { msg.Header[name] = []string{value} })
	_, err := p.js.PublishMsg(p.t.Context(), msg)
	require.NoError(p.t, err)
}

// refuses waits until n messages were refused.
func (p *till) refuses(n int64) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.refused.n.Load() >= n }, patience, time.Millisecond)
}

// ring is what the owner of the database has, or somebody with the keys of some topics alone.
func (p *till) ring(topics ...string) *keyring.Ring {
	p.t.Helper()
	k := keyring.Keys{On: true, Roots: []keyring.Root{{ID: 1}}}
	p.read("SELECT id, (SELECT secret FROM quipu_shop.keys) FROM quipu_shop.space", &k.Space, &k.Roots[0].Secret)
	all := keyring.New(k)
	if topics == nil {
		return all
	}
	k.Roots = nil
	for _, topic := range topics {
		k.Topics = append(k.Topics, all.TopicKeys(topic)...)
	}
	return keyring.New(k)
}

// A stranger on the bus answers somebody else's request (S2).
func TestForgedResponse(t *testing.T) {
	t.Parallel()
	p := newTill(t)
	for i, topic := range []string{"", "pay.charge"} {
		m := p.answer(topic)
		m.Header.Publication += i // or the stream takes the second for a duplicate
		p.publish(m)
	}
	p.refuses(2)
	p.ends()
}

// The worker of one topic answers the request of another, and sends messages of the engine (S2).
func TestStolenTopic(t *testing.T) {
	t.Parallel()
	p := newTill(t)
	m := p.answer("ship")
	require.NoError(t, m.Sign(p.ring("ship")))
	p.publish(m)
	p.refuses(1)
	m = p.answer("pay.charge")
	m.Header.Publication = 2
	m.Body = wire.Encode(&wire.Hint{
		Kind: journal.MessageInterrupt, Job: journal.JobID{1}.String(), Row: journal.GUID{1}.String(),
		DAD: string(collation.RootDAD),
	})
	require.NoError(t, m.Sign(p.ring("pay.charge")))
	p.publish(m)
	p.refuses(2)
	p.ends()
}

// Whoever has the key of the topic is its worker: the attacks above fail by the signature alone.
func TestTheKeyOfTheTopicIsAllThatIsMissing(t *testing.T) {
	t.Parallel()
	p := newTill(t)
	m := p.answer("pay.charge")
	require.NoError(t, m.Sign(p.ring("pay.charge")))
	p.publish(m)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := quipu.WaitAs[int](ctx, p.client, p.job)
	require.NoError(t, err)
	require.Equal(t, 1000, out)
}

// A stranger on the bus makes a worker run its handler (S2).
func TestForgedRequest(t *testing.T) {
	t.Parallel()
	p := newTill(t)
	m := &transport.Message{
		To: transport.ToWork("pay.charge"), Header: transport.Header{GUID: [16]byte{9}, Publication: 1, Turn: 1, Epoch: 1},
		Body: wire.Encode(&wire.Request{
			Space: "shop", Job: p.job.ID.String(), Key: "till", Generation: 1, Flow: "pay", Version: "1", Activity: "charge", DAD: ",0,0",
			Topic: "pay.charge", Request: journal.GUID{9}.String(), Turn: 1, Attempt: 1, Attempts: 1, Input: []byte("1000"),
		}),
	}
	p.publish(m)
	p.refuses(1)
	p.ends()
}

// A stranger publishes under the id of an answer that is still to come, so that the stream drops
// the answer as a duplicate (S1).
func TestAnswerSuppressedByItsID(t *testing.T) {
	t.Parallel()
	p := newTill(t)
	m := p.answer("pay.charge")
	m.Body = []byte("nonsense")
	p.publish(m)
	p.refuses(1)
	p.ends()
}

// written names the tables with a row that was inserted or updated since a transaction, but for those
// that the processes and the held request keep up to date.
func (p *till) written(since string) (tables []string) {
	p.t.Helper()
	db := p.connect(p.Postgres)
	rows, err := db.Query(p.t.Context(), `SELECT table_name FROM information_schema.tables
		WHERE table_schema = 'quipu_shop' AND table_type = 'BASE TABLE' AND table_name NOT IN ('sessions', 'space', 'partitions', 'dispatches')`)
	require.NoError(p.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(p.t, err)
	require.Contains(p.t, all, "dead_letters")
	for _, table := range all {
		if p.count(db, pgx.Identifier{table}.Sanitize()+" WHERE age(xmin) < age('"+since+"'::xid)") > 0 {
			tables = append(tables, table)
		}
	}
	return tables
}

// A stranger floods the streams with what cannot be read: nothing of it is written (S15).
func TestDeadLetterFlood(t *testing.T) {
	t.Parallel()
	p := newTill(t)
	var before string
	p.read("SELECT pg_current_xact_id()::xid::text", &before)
	const flood = 5000
	for i := range flood {
		msg := &natsgo.Msg{Subject: "quipu.shop.lane." + strconv.Itoa(i%16), Data: []byte("{"), Header: natsgo.Header{}}
		switch i % 4 {
		case 0:
			msg.Subject = "quipu.shop.start"
		case 1:
			msg.Subject = "quipu.shop.work.pay.charge"
		case 2:
			msg.Header["Quipu-Guid"] = []string{hex.EncodeToString(make([]byte, 16))}
		default:
			msg.Header["Quipu-Mac"] = []string{"1." + hex.EncodeToString(make([]byte, 16))}
		}
		_, err := p.js.PublishMsgAsync(msg)
		require.NoError(t, err)
		if i%1000 == 999 { // a busy server takes longer than the client waits for room
			devtest.Await(t, "the acks of a thousand messages", p.js.PublishAsyncComplete())
		}
	}
	p.refuses(flood)
	require.Empty(t, p.written(before))
	require.Equal(t, 1, p.count(p.admin(), "dispatches"))
	p.ends()
	require.Contains(t, p.written(before), "jobs", "what is written is noticed")
}
