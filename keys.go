package quipu

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/transport"
)

// Keys acts on the keys of a space, with which its messages are signed (S1). Runtime.Keys returns
// one.
type Keys struct{ rt *Runtime }

// Key is one root secret of a space, without the secret.
type Key struct {
	ID    int       // from 1; a later key has a higher one
	Signs time.Time // it signs from then on, until a later key does
	Ends  time.Time // from then on no message that it signed is accepted; zero: it holds
}

// Keys returns what an operator does with the keys of the space.
func (rt *Runtime) Keys() Keys { return Keys{rt} }

// List returns the keys, the oldest first, at most 1 000. It returns none to a login that may not
// read them, such as a worker's.
func (k Keys) List(ctx context.Context) ([]Key, error) {
	read, err := k.rt.store.Keys(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Key, len(read.Roots))
	for i, r := range read.Roots {
		all[i] = Key{ID: r.ID, Signs: time.UnixMicro(r.Signs)}
		if r.Ends != 0 {
			all[i].Ends = time.UnixMicro(r.Ends)
		}
	}
	return all, nil
}

// Rotate adds a key and returns its id. All processes read it before it signs, a minute later; the
// key before it holds for a day more. With atOnce the new key signs at once and no other holds:
// for a key that was stolen; each process acts on that within some seconds. Messages that are under
// way then come again by their rows. Workers in
// other languages need their topic's new key (Topic): within the day, or at once. It needs the
// owner's rights.
func (k Keys) Rotate(ctx context.Context, atOnce bool) (id int, err error) {
	return k.rt.store.RotateKeys(ctx, atOnce)
}

// Topic returns the keys of a topic that hold, the newest first, as a worker in another language
// is configured with them: ID:HEX, with commas between (S3). Who has them can answer the requests
// of the topic. The error says where the login may not read the keys of the space.
func (k Keys) Topic(ctx context.Context, topic string) (string, error) {
	if err := transport.ValidateTopic(topic); err != nil {
		return "", err
	}
	read, err := k.rt.store.Keys(ctx)
	if err != nil {
		return "", err
	}
	ring := keyring.New(read)
	if !ring.Derives() {
		return "", fmt.Errorf("the keys of space %s: this login may not read them: use that of an engine or of the owner", k.rt.cfg.Space)
	}
	var texts []string
	for _, t := range ring.TopicKeys(topic) {
		texts = append([]string{t.String()}, texts...)
	}
	return strings.Join(texts, ","), nil
}

// On says whether the messages of the space are signed, and refused without a signature (S3).
func (k Keys) On(ctx context.Context) (bool, error) {
	read, err := k.rt.store.Keys(ctx)
	return read.On, err
}

// Switch lets the space sign its messages, or not. It is a setting of the space, and all processes
// follow within some seconds. In between they refuse some of each other's messages, which come
// again by their rows. It needs the owner's rights.
func (k Keys) Switch(ctx context.Context, on bool) error { return k.rt.store.SetSigned(ctx, on) }
