package attacks

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	natsserver "github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/transport/nats"
)

// natsUsers are the columns of the table of all subjects in docs/security.md: engine, worker of the topic, worker of
// another topic, client, and a user who may only connect.
var natsUsers = []string{"engine", "worker", "ship", "client", "stranger"}

var subjectRow = regexp.MustCompile("^\\| `([^`]+)` \\|")

// TestStolenNATSLogins_S4: whoever has the login of an engine, a worker or a client on NATS, or any other, publishes
// and hears what the table of docs/security.md says, and nothing else; and every right that the program prints stands
// there. Somebody without a login is not let in.
func TestStolenNATSLogins_S4(t *testing.T) {
	t.Parallel()
	urlOf := guarded(t, "")
	var told, subjects []string
	for line := range strings.Lines(section(t, "All subjects")) {
		if m := subjectRow.FindStringSubmatch(line); m != nil {
			told, subjects = append(told, strings.TrimSpace(line)), append(subjects, m[1])
		}
	}
	given := make([]string, len(subjects))
	conns := make([]*natsgo.Conn, len(natsUsers))
	for i, user := range natsUsers {
		nc, err := natsgo.Connect(urlOf(user))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		conns[i] = nc
	}
	for i, subject := range subjects {
		given[i] = "| `" + subject + "` |"
		for _, nc := range conns {
			given[i] += " " + may(t, nc, subject) + " |"
		}
	}
	require.Equal(t, given, told, "the table of docs/security.md is to be\n\n%s\n", strings.Join(given, "\n"))
	_, err := natsgo.Connect(urlOf("nobody"))
	require.ErrorIs(t, err, natsgo.ErrAuthorization)

	streams := strings.NewReplacer("QUIPU_shop_LANES", "QUIPU_shop_WORK", "QUIPU_shop_START", "QUIPU_shop_WORK") // a line is for all three
	for part, topics := range map[nats.Part][]string{nats.Engine: nil, nats.Worker: {"pay.charge"}, nats.Client: nil} {
		r, err := nats.RightsOf(nats.Config{Space: "shop"}, part, topics)
		require.NoError(t, err)
		for _, right := range slices.Concat(r.Publish, r.Subscribe) {
			require.True(t, slices.ContainsFunc(subjects, func(s string) bool {
				return natsserver.SubjectsCollide(streams.Replace(s), streams.Replace(right))
			}),
				"a right of %s has no line in the table: %s", part, right)
		}
	}
}

// may tries a subject, and says what the server lets the connection do. A refusal comes before the answer to the flush.
func may(t *testing.T, nc *natsgo.Conn, subject string) string {
	t.Helper()
	refused := func(what string) bool {
		require.NoError(t, nc.Flush())
		err := nc.LastError()
		return err != nil && strings.Contains(err.Error(), fmt.Sprintf("%s %q", what, subject))
	}
	var can []string
	if !strings.ContainsAny(subject, "*>") {
		require.NoError(t, nc.Publish(subject, nil))
		if !refused("Publish to") {
			can = append(can, "publish")
		}
	}
	sub, err := nc.SubscribeSync(subject)
	require.NoError(t, err)
	if !refused("Subscription to") {
		can = append(can, "hear")
		require.NoError(t, sub.Unsubscribe())
	}
	if len(can) == 0 {
		return "–"
	}
	return strings.Join(can, ", ")
}

// A user who may publish to a stream can have the server's answer sent wherever he wants. By that he makes no call of
// JetStream, and beside such a text the mark of the database is there again (S4, S13).
func TestAnswersThatAreSentElsewhere_S4(t *testing.T) {
	t.Parallel()
	client, urlOf, _, g := office(t, "")
	engine := g.open(nil, func(c *quipu.Config) { c.NATS, c.Roles = urlOf("engine"), []quipu.Role{quipu.RoleEngine} })
	g.Run(engine)
	witness := func() error { _, _, err := below.Witness(t.Context(), engine); return err }
	world.Eventually(t, "a mark", witness)
	for _, user := range []string{"client", "ship"} {
		nc, err := natsgo.Connect(urlOf(user))
		require.NoError(t, err)
		for _, to := range []string{
			"$JS.API.STREAM.DELETE.QUIPU_shop_WORK", "$JS.API.STREAM.PURGE.QUIPU_shop_LANES", "$JS.API.CONSUMER.DELETE.QUIPU_shop_LANES.lane-3", "quipu.shop.work.ship", "quipu.shop.mark",
		} {
			require.NoError(t, nc.PublishMsg(&natsgo.Msg{Subject: "quipu.shop.lane.3", Reply: to}))
		}
		require.NoError(t, nc.PublishMsg(&natsgo.Msg{Subject: "quipu.shop.lane.3", Reply: "$JS.ACK.QUIPU_shop_LANES.lane-3.1.1.1.1.1"}))
		require.NoError(t, nc.Flush())
		require.ErrorContains(t, nc.LastError(), "Publish with Reply of")
		nc.Close()
	}
	world.Eventually(t, "the mark, beside what is there", witness)
	job, err := client.Start(t.Context(), "pay", "after", 7)
	require.NoError(t, err)
	out, err := quipu.WaitAs[int](t.Context(), client, job)
	require.NoError(t, err)
	require.Equal(t, 7, out)
}
