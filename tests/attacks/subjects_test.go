package attacks

import (
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// subjects are what nobody but an engine publishes: what makes, changes, pauses, empties or reads streams and
// consumers, what engines say, and what belongs to another topic or space.
var subjects = []string{
	"$JS.API.STREAM.CREATE.QUIPU_shop_WORK", "$JS.API.STREAM.UPDATE.QUIPU_shop_LANES", "$JS.API.STREAM.DELETE.QUIPU_shop_WORK", "$JS.API.STREAM.PURGE.QUIPU_shop_WORK", "$JS.API.STREAM.MSG.GET.QUIPU_shop_MARK", "$JS.API.STREAM.MSG.DELETE.QUIPU_shop_MARK",
	"$JS.API.STREAM.MSG.GET.QUIPU_shop_WORK", "$JS.API.STREAM.MSG.DELETE.QUIPU_shop_LANES", "$JS.API.STREAM.INFO.QUIPU_shop_WORK", "$JS.API.STREAM.SNAPSHOT.QUIPU_shop_WORK",
	"$JS.API.STREAM.RESTORE.QUIPU_shop_WORK", "$JS.API.STREAM.LEADER.STEPDOWN.QUIPU_shop_WORK", "$JS.API.STREAM.LIST", "$JS.API.STREAM.NAMES", "$JS.API.INFO",
	"$JS.API.DIRECT.GET.QUIPU_shop_WORK", "$JS.API.DIRECT.GET.QUIPU_shop_WORK.quipu.shop.work.ship",
	"$JS.API.CONSUMER.CREATE.QUIPU_shop_WORK.x", "$JS.API.CONSUMER.DURABLE.CREATE.QUIPU_shop_WORK.work-ship", "$JS.API.CONSUMER.DELETE.QUIPU_shop_WORK.work-ship",
	"$JS.API.CONSUMER.PAUSE.QUIPU_shop_WORK.work-ship", "$JS.API.CONSUMER.PAUSE.QUIPU_shop_LANES.lane-3", "$JS.API.CONSUMER.UNPIN.QUIPU_shop_LANES.lane-3",
	"$JS.API.CONSUMER.INFO.QUIPU_shop_WORK.work-ship", "$JS.API.CONSUMER.LIST.QUIPU_shop_WORK", "$JS.API.CONSUMER.NAMES.QUIPU_shop_WORK",
	"$JS.API.CONSUMER.MSG.NEXT.QUIPU_shop_WORK.work-pay=charge", "$JS.API.CONSUMER.MSG.NEXT.QUIPU_shop_LANES.lane-3",
	"$JS.ACK.QUIPU_shop_WORK.work-pay=charge.1.1.1.1.1", "$JS.ACK.QUIPU_shop_LANES.lane-3.1.1.1.1.1", "$JS.FC.QUIPU_shop_WORK", "$SYS.REQ.SERVER.PING",
	"quipu.shop.ended.00", "quipu.shop.consumer.pay.charge", "quipu.shop.mark", "quipu.other.lane.3", "_INBOX.shop.engine.1",
}

// TestStolenNATSLogins_S4: whoever has the login of a worker or of a client on NATS reads and writes nothing
// but what its part needs, and a stranger is not let in.
func TestStolenNATSLogins_S4(t *testing.T) {
	t.Parallel()
	urlOf := guarded(t, "")
	for user, own := range map[string]struct{ publish, hear []string }{
		"ship": { // what a client signs, or no one
			[]string{"quipu.shop.work.pay.charge", "quipu.shop.work.ship", "quipu.shop.start"},
			[]string{"quipu.shop.ended.00", "_INBOX.shop.client.>"},
		},
		"client": {
			[]string{"$JS.API.CONSUMER.MSG.NEXT.QUIPU_shop_WORK.work-ship", "$JS.ACK.QUIPU_shop_WORK.work-ship.1.1.1.1.1", "quipu.shop.consumer.ship"},
			[]string{"_INBOX.shop.work-ship.>"},
		},
	} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			refused := make(chan error, 100)
			nc, err := natsgo.Connect(urlOf(user), natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) { refused <- err }))
			require.NoError(t, err)
			defer nc.Close()
			denied := func(subject string) {
				t.Helper()
				select {
				case err := <-refused:
					require.ErrorIs(t, err, natsgo.ErrPermissionViolation)
					require.ErrorContains(t, err, subject)
				case <-time.After(patience):
					require.Fail(t, "it is allowed", subject)
				}
			}
			for _, subject := range append(own.publish, subjects...) {
				require.NoError(t, nc.Publish(subject, nil))
				denied(subject)
			}
			hear := []string{
				"quipu.shop.>", "quipu.shop.lane.*", "quipu.shop.work.>", "quipu.shop.start", "quipu.shop.mark", "quipu.shop.consumer.>", "_INBOX.>", "_INBOX.shop.engine.>",
				"_INBOX.shop.work-pay=charge.>", "$JS.ACK.>", "$JS.EVENT.>", "$SYS.>",
			}
			for _, subject := range append(own.hear, hear...) {
				_, err := nc.SubscribeSync(subject)
				require.NoError(t, err)
				denied(subject)
			}
		})
	}
	_, err := natsgo.Connect(urlOf("nobody"))
	require.ErrorIs(t, err, natsgo.ErrAuthorization)
}
