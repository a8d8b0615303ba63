package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quipu-journal/quipu/transport"
)

// witnessWait bounds one call of Witness or Attest.
const witnessWait = 2 * time.Second

// Witness returns what was attested last in the space; "" if nothing was, or if NATS has lost it.
// It shows a database that is older than what NATS has seen of it (S13). The error wraps
// transport.ErrUnavailable, or is that of a MAC that does not hold (S2): nobody but an engine
// attests.
func (b *Bus) Witness(ctx context.Context) (string, error) {
	if !b.nc.IsConnected() {
		return "", fmt.Errorf("read the witness: %w: not connected", transport.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, witnessWait)
	defer cancel()
	stream, err := b.js.Stream(ctx, b.witnessConfig().Name)
	if err == nil {
		var msg *jetstream.RawStreamMsg
		if msg, err = stream.GetLastMsgForSubject(ctx, b.witnessConfig().Subjects[0]); err == nil {
			return string(msg.Data), b.attested(msg)
		}
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", nil
	}
	return "", ioError("read the witness", err)
}

// witnessText begins the text of an attestation's MAC.
const witnessText = "quipu-witness-v1"

// attested checks the MAC of an attestation.
func (b *Bus) attested(msg *jetstream.RawStreamMsg) error {
	if b.cfg.Keys == nil {
		return nil
	}
	if err := b.cfg.Keys.Check("", msg.Header.Get(transport.HeaderMAC), []byte(witnessText), msg.Data); err != nil {
		return fmt.Errorf("the witness is not the space's: %w", err)
	}
	return nil
}

// Attest leaves a text for Witness in place of the one before, and makes its stream if need be.
// The error is that of Witness.
func (b *Bus) Attest(ctx context.Context, text string) error {
	if !b.nc.IsConnected() {
		return fmt.Errorf("attest: %w: not connected", transport.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, witnessWait)
	defer cancel()
	want := b.witnessConfig()
	msg := natsgo.NewMsg(want.Subjects[0])
	msg.Data = []byte(text)
	if b.cfg.Keys != nil {
		mac, err := b.cfg.Keys.Sign("", []byte(witnessText), msg.Data)
		if err != nil {
			return fmt.Errorf("attest: %w", err)
		}
		msg.Header.Set(transport.HeaderMAC, mac)
	}
	_, err := b.js.PublishMsg(ctx, msg)
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		if _, err = b.js.CreateOrUpdateStream(ctx, want); err == nil {
			_, err = b.js.PublishMsg(ctx, msg)
		}
	}
	if err != nil {
		return ioError("attest", err)
	}
	return nil
}

// witnessConfig is the stream of the witness, which has one message.
func (b *Bus) witnessConfig() jetstream.StreamConfig {
	cfg := b.streamConfig(transport.Start)
	cfg.Name, cfg.Subjects = "QUIPU_"+b.cfg.Space+"_MARK", []string{"quipu." + b.cfg.Space + ".mark"}
	cfg.Description = "Quipu's newest mark of the database; without it an older database shows less well"
	cfg.Retention, cfg.Discard, cfg.MaxMsgs, cfg.MaxBytes = jetstream.LimitsPolicy, jetstream.DiscardOld, 1, unlimited
	return cfg
}
