//go:build chaos

package e2e

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// queues says what the streams hold and what their consumers think of it: a job
// that does not go on waits for a message, and this is where that is.
func (c *chaos) queues() {
	t := c.e.t
	ctx, cancel := context.WithTimeout(t.Context(), 5*jetPatience)
	defer cancel()
	nc, err := natsgo.Connect(c.url, natsgo.Timeout(jetPatience))
	if err != nil {
		t.Logf("queues: %v", err)
		return
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Logf("queues: %v", err)
		return
	}
	for _, kind := range []string{"LANES", "START", "WORK"} {
		s, err := js.Stream(ctx, "QUIPU_"+c.e.space+"_"+kind)
		if err != nil {
			t.Logf("queues: %s: %v", kind, err)
			continue
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
		if err != nil {
			t.Logf("queues: %s: %v", kind, err)
			continue
		}
		t.Logf("queue %s, made %s: %d messages, %d to %d: %v", kind, info.Created, info.State.Msgs, info.State.FirstSeq, info.State.LastSeq, info.State.Subjects)
		for subject := range info.State.Subjects {
			if m, err := s.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(subject)); err == nil {
				t.Logf("  oldest of %s: %d, of %s, %v", subject, m.Sequence, m.Time, m.Header)
			}
		}
		consumers := s.ListConsumers(ctx)
		for x := range consumers.Info() {
			for subject := range info.State.Subjects {
				if x.Config.FilterSubject == subject || len(x.Config.FilterSubjects) > 0 || x.Config.FilterSubject == "" {
					t.Logf("  consumer %s of %s, made %s: delivered %d, floor %d, %d ack pending, %d redelivered, %d pending, %d waiting; %+v", x.Name, subject, x.Created,
						x.Delivered.Stream, x.AckFloor.Stream, x.NumAckPending, x.NumRedelivered, x.NumPending, x.NumWaiting, x.Config)
				}
			}
		}
	}
}

// rows says what the first due rows wait for.
func (c *chaos) rows() {
	t := c.e.t
	conn := c.tables()
	rows, err := conn.Query(t.Context(), `
		select format('%s of %s %s%s, %s, publication %s of turn %s, attempt %s, held by %s of session %s, due in %s ms, published %s ms ago',
			kind, job, activity, dad, held, publication, turn, attempt, holder, session, (next_at - micros()) / 1000, (micros() - published_at) / 1000)
		from dispatches where next_at is not null order by next_at limit 50`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	t.Logf("rows:\n%s", strings.Join(all, "\n"))
}
