package attacks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// keptMarks is what somebody has who heard the space's marks, and can still publish on their subject.
type keptMarks struct {
	t            *testing.T
	nc           *natsgo.Conn
	stream       jetstream.Stream
	retired, old *natsgo.Msg // an engine's marks of before; the key of the first holds no more
}

// newest is the mark that was left last, to be published again.
func (k *keptMarks) newest() *natsgo.Msg {
	k.t.Helper()
	m, err := k.stream.GetLastMsgForSubject(k.t.Context(), "quipu.shop.mark")
	require.NoError(k.t, err)
	return &natsgo.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}
}

// publish publishes messages n times each, whatever the stream says to it.
func (k *keptMarks) publish(n int, msgs ...*natsgo.Msg) {
	k.t.Helper()
	for m := range slices.Values(slices.Repeat(msgs, n)) {
		require.NoError(k.t, k.nc.PublishMsg(m))
	}
	require.NoError(k.t, k.nc.Flush())
}

// attacks are what he publishes, by what it is.
func (k *keptMarks) attacks() map[string]func() {
	garbage := &natsgo.Msg{Subject: "quipu.shop.mark", Data: []byte("garbage")}
	forged := &natsgo.Msg{Subject: garbage.Subject, Header: natsgo.Header{transport.HeaderMAC: {"2.00000000000000000000000000000000"}}, Data: k.old.Data}
	return map[string]func(){
		"an old mark":                         func() { k.publish(1, k.old) },
		"a hundred old marks":                 func() { k.publish(100, k.old) },
		"an old mark of a key that has ended": func() { k.publish(1, k.retired) },
		"garbage":                             func() { k.publish(1, garbage) },
		"garbage until there is no room":      func() { k.publish(200, garbage, forged) },
	}
}

// S13, S4: somebody who can publish on the space's bus, and no more, publishes marks that he kept, and
// garbage, until there is no room. The processes of the space go on and leave their marks. Once none of
// them runs, yesterday's copy of the database is still refused. Engines have the printed rights on NATS.
func TestOldMarksArePublishedAgain_S13(t *testing.T) {
	t.Parallel()
	g, pg := copied(t)
	urlOf := guarded(t, "")
	var log devtest.Log
	strange := &counted{metric: observer.MetricRefused}
	engine := func(c *quipu.Config) {
		c.NATS, c.Roles, c.Logger, c.Observer = urlOf("engine"), []quipu.Role{quipu.RoleEngine}, logTo(&log), strange
	}
	rt := g.open(nil, engine)
	stop := g.Run(rt)
	passes := func(what string) {
		t.Helper()
		before := beat(t, rt)
		world.Eventually(t, what, func() error {
			if now := beat(t, rt); now < before+2 {
				return fmt.Errorf("beat %d, after %d", now, before)
			}
			return nil
		})
	}
	passes("a mark")
	k := newKeptMarks(t, urlOf("engine"))
	k.retired = k.newest()
	_, err := rt.Keys().Rotate(t.Context(), true)
	require.NoError(t, err)
	world.Eventually(t, "a mark by the new key", func() error {
		if k.old = k.newest(); k.old.Header.Get(transport.HeaderMAC)[0] != '2' {
			return fmt.Errorf("%s", k.old.Header)
		}
		return nil
	})
	require.NoError(t, pg.Backup(t.Context()))
	passes("a day")
	for what, attack := range k.attacks() {
		attack()
		passes(what)
		world.Eventually(t, what+": the process is ready", func() error { return rt.Check(t.Context()) })
	}
	require.Positive(t, strange.n.Load())
	require.Contains(t, log.String(), "somebody else publishes")
	stop()
	rt.Close()
	last := string(k.newest().Data)
	require.NotContains(t, log.String(), "ermissions", "nothing was refused")

	require.NoError(t, pg.Restore(t.Context(), false))
	for what, attack := range k.attacks() {
		attack()
		_, err = quipu.Open(t.Context(),
			quipu.Config{Postgres: g.Postgres, NATS: urlOf("engine"), Space: "shop", Roles: []quipu.Role{quipu.RoleEngine}})
		require.ErrorIs(t, err, quipu.ErrAnotherDatabase, what)
		require.ErrorContains(t, err, fmt.Sprintf("beat %s of the space was seen", last[strings.LastIndex(last, " ")+1:]), what)
		_, err = g.admin().Exec(t.Context(), "UPDATE space SET halted = NULL") // for the next
		require.NoError(t, err)
	}
}

func newKeptMarks(t *testing.T, url string) *keptMarks {
	t.Helper()
	nc, err := natsgo.Connect(url, natsgo.CustomInboxPrefix("_INBOX.shop.engine"))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	k := &keptMarks{t: t, nc: nc}
	k.stream, err = js.Stream(context.WithoutCancel(t.Context()), "QUIPU_shop_MARK")
	require.NoError(t, err)
	return k
}
