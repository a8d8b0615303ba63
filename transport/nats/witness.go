package nats

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quipu-journal/quipu/transport"
)

const (
	// witnessWait bounds one call of Witness, Attest or Retract.
	witnessWait = 2 * time.Second
	// WitnessRoom is how many attestations there is room for: one of each engine that leaves one just
	// now, and what strangers publish. Each costs a request to read, once.
	WitnessRoom = 32
	// attestationBytes bounds an attestation with its MAC.
	attestationBytes = 1 << 10
)

// ErrWitnessFull says that there is no room for one more attestation. Retract makes some.
var ErrWitnessFull = errors.New("the witness is full")

// Attestation is a text that somebody has left in the space, with Attest or otherwise.
type Attestation struct {
	Seq  uint64 // of its stream; a later one is higher
	Text string
	// Age is how long ago it was left, by the server's clock.
	Age time.Duration
	// Err says that no engine of the space is known to have left it: transport.ErrForged or
	// transport.ErrNoKey. It counts for nothing (S2).
	Err error
}

// attested are the attestations that this process has read, so that each is read once.
type attested struct {
	mu     sync.Mutex
	stream jetstream.Stream         // as it was at the last look; nil: there was none
	upto   uint64                   // what has a higher number is not read yet
	left   []jetstream.RawStreamMsg // others may have taken some away by now
}

// Witness returns the attestations of the space, in the order in which they were left; none if there are
// none, or if NATS has lost them. They show a database that is older than what NATS has seen of it (S13):
// anybody who can publish may have repeated an older one, so their order says nothing, and the caller
// takes what is newest by its text. The error wraps transport.ErrUnavailable, unless a right is missing.
func (b *Bus) Witness(ctx context.Context) ([]Attestation, error) {
	if !b.nc.IsConnected() {
		return nil, fmt.Errorf("read the witness: %w: not connected", transport.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, witnessWait)
	defer cancel()
	b.attested.mu.Lock()
	defer b.attested.mu.Unlock()
	now, err := b.readAttested(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		b.attested.stream, b.attested.left = nil, nil
		return nil, nil
	}
	if err != nil {
		return nil, ioError("read the witness", err)
	}
	all := make([]Attestation, len(b.attested.left))
	for i := range all {
		m := &b.attested.left[i]
		all[i] = Attestation{Seq: m.Sequence, Text: string(m.Data), Age: now.Sub(m.Time), Err: b.authentic(m)}
	}
	return all, nil
}

// readAttested reads what is new, and returns the time of the server.
func (b *Bus) readAttested(ctx context.Context) (now time.Time, err error) {
	a, want := &b.attested, b.witnessConfig()
	stream, err := b.js.Stream(ctx, want.Name)
	if err != nil {
		return now, err
	}
	info := stream.CachedInfo()
	// made anew, or put back
	if a.stream == nil || !info.Created.Equal(a.stream.CachedInfo().Created) || info.State.LastSeq < a.upto {
		a.upto, a.left = 0, nil
	}
	a.stream = stream
	a.left = slices.DeleteFunc(a.left, func(m jetstream.RawStreamMsg) bool { return m.Sequence < info.State.FirstSeq })
	for a.upto < info.State.LastSeq {
		// or the next one that there is
		m, err := stream.GetMsg(ctx, a.upto+1, jetstream.WithGetMsgSubject(want.Subjects[0]))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			a.upto = info.State.LastSeq
			break
		}
		if err != nil {
			return now, err
		}
		a.left, a.upto = append(a.left, *m), m.Sequence
	}
	return info.TimeStamp, nil
}

// witnessText begins the text of an attestation's MAC.
const witnessText = "quipu-witness-v1"

// authentic checks the MAC of an attestation, with the keys of now.
func (b *Bus) authentic(m *jetstream.RawStreamMsg) error {
	if b.cfg.Keys == nil {
		return nil
	}
	return b.cfg.Keys.Check("", m.Header.Get(transport.HeaderMAC), []byte(witnessText), m.Data)
}

// Attest leaves a text for Witness beside those that are there, and makes their stream if need be. The
// caller takes those away that it replaces, when it stands. The error is ErrWitnessFull, or that of
// Witness.
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
	err := b.keepAttested(ctx)
	if err == nil {
		_, err = b.js.PublishMsg(ctx, msg)
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		if _, err = b.js.CreateStream(ctx, want); err == nil || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			_, err = b.js.PublishMsg(ctx, msg)
		}
	}
	if api, is := errors.AsType[*jetstream.APIError](err); is && api.ErrorCode == errCodeStoreFailed {
		return fmt.Errorf("attest: %w: %s has room for %d messages: %w", ErrWitnessFull, want.Name, WitnessRoom, err)
	}
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) { // the server does not answer, or its JetStream alone
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), witnessWait)
			defer cancel()
			_ = b.Answers(within) // notes it
		}
		return ioError("attest", err)
	}
	b.hear()
	return nil
}

// keepAttested gives the stream that Witness has found the settings by which nobody who can only publish
// takes an attestation away. All else stays as an operator has set it.
func (b *Bus) keepAttested(ctx context.Context) error {
	a := &b.attested
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stream == nil {
		return nil
	}
	have := a.stream.CachedInfo().Config
	want := have
	want.Discard, want.MaxMsgs, want.MaxMsgsPerSubject = jetstream.DiscardNew, WitnessRoom, unlimited
	want.MaxAge, want.AllowRollup = 0, false
	if want.MaxMsgSize <= 0 {
		want.MaxMsgSize = attestationBytes
	}
	if reflect.DeepEqual(want, have) {
		return nil
	}
	stream, err := b.js.UpdateStream(ctx, want)
	if err != nil {
		return fmt.Errorf("let the stream %s keep its messages: %w", want.Name, err)
	}
	a.stream = stream
	return nil
}

// Retract takes attestations away that Witness has returned, by their numbers. It is no error that one is
// gone already. The error is that of Witness.
func (b *Bus) Retract(ctx context.Context, seqs ...uint64) error {
	ctx, cancel := context.WithTimeout(ctx, witnessWait)
	defer cancel()
	a := &b.attested
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seq := range seqs {
		if a.stream == nil {
			return nil
		}
		// another process was faster
		if err := a.stream.DeleteMsg(ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return ioError(fmt.Sprintf("take message %d of %s away", seq, b.witnessConfig().Name), err)
		}
		a.left = slices.DeleteFunc(a.left, func(m jetstream.RawStreamMsg) bool { return m.Sequence == seq })
	}
	return nil
}

// witnessConfig is the stream of the witness. A message that finds no room is refused, and no other one
// dropped for it: whoever can only publish takes nothing away.
func (b *Bus) witnessConfig() jetstream.StreamConfig {
	cfg := b.streamConfig(transport.Start)
	cfg.Name, cfg.Subjects = strings.ToUpper(b.cfg.Prefix)+"_"+b.cfg.Space+"_MARK", []string{b.subjects() + "mark"}
	cfg.Description = "Quipu's newest mark of the database; without it an older database shows less well"
	cfg.Retention, cfg.Discard, cfg.MaxMsgs, cfg.MaxMsgSize = jetstream.LimitsPolicy, jetstream.DiscardNew,
		WitnessRoom, attestationBytes
	cfg.MaxBytes, cfg.MaxAge = unlimited, 0
	return cfg
}
