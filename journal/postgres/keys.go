package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/journal"
)

// Keys implements keyring.Source: it reads what the login may know.
func (s *Store) Keys(ctx context.Context) (keyring.Keys, error) {
	var k keyring.Keys
	err := s.look(ctx, "keys", func(c *conn) (err error) {
		k, err = s.keys(ctx, c)
		return err
	})
	return k, err
}

func (s *Store) keys(ctx context.Context, c *conn) (keyring.Keys, error) {
	k := keyring.Keys{}
	if known := s.where.known.Load(); known != nil {
		k.Space = known.Space
	}
	var roots, topics bool
	err := c.query(ctx, "keys_may", func(v row) error {
		k.On, k.Now, roots, topics = v.bool(0), v.int(1), v.bool(2), v.bool(3)
		return nil
	})
	if err != nil || !roots && !topics {
		return k, err
	}
	if roots {
		err = c.query(ctx, "keys_roots", into(&k.Roots, func(v row) (keyring.Root, error) {
			return keyring.Root{ID: int(v.int(0)), Secret: v.bytes(1), Signs: v.int(2), Ends: v.int(3)}, nil
		}))
		return k, err
	}
	err = c.query(ctx, "keys_topics", into(&k.Topics, func(v row) (keyring.TopicKey, error) {
		return keyring.TopicKey{Topic: v.text(0), ID: int(v.int(1)), Key: v.bytes(2), Signs: v.int(3), Ends: v.int(4)},
			nil
	}))
	return k, err
}

// firstKey makes the first root secret in the transaction of a migration.
func (c *conn) firstKey(ctx context.Context) error {
	return c.query(ctx, "keys_first", nil, newSecret())
}

func newSecret() []byte {
	b := make([]byte, keyring.SecretBytes)
	_, _ = rand.Read(b) // it never fails
	return b
}

// RotateKeys adds a root secret that signs after keyring.Grace, lets those before it end after
// keyring.Keep more, and derives the keys of all known topics. With atOnce the new one signs at
// once and the others do not hold any more: messages that are under way are sent again by their
// rows. It returns the id of the new key. It needs the owner's rights.
func (s *Store) RotateKeys(ctx context.Context, atOnce bool) (id int, err error) {
	grace, keep := keyring.Grace, keyring.Grace+keyring.Keep
	if atOnce {
		grace, keep = 0, 0
	}
	err = s.act(ctx, "rotate the keys", func(c *conn) ([]journal.SpaceEntry, error) {
		if id, err = s.rotateKeys(ctx, c, grace, keep); err != nil {
			return nil, err
		}
		return one(true, journal.SpaceKeyAdded, map[string]string{"key": strconv.Itoa(id), "others": "hold for " + keep.String()}), nil
	})
	return id, err
}

func (s *Store) rotateKeys(ctx context.Context, c *conn, grace, keep time.Duration) (id int, err error) {
	var topics []string
	err = c.run(
		ctx,
		step{"keys_end", [][]byte{pInt(keep.Microseconds())}, nil}, step{"keys_end_topics", [][]byte{pInt(keep.Microseconds())}, nil},
		step{"keys_add", [][]byte{newSecret(), pInt(grace.Microseconds())}, func(v row) error { id = int(v.int(0)); return nil }},
		step{"keys_known", nil, func(v row) error { topics = append(topics, v.text(0)); return nil }},
	)
	if err != nil {
		return 0, err
	}
	if id > keyring.MaxKeys {
		return 0, fmt.Errorf("the space has %d keys, the limit: none is added, the newest goes on signing", keyring.MaxKeys)
	}
	k, err := s.keys(ctx, c)
	if err != nil {
		return 0, err
	}
	if len(topics) == 0 {
		return id, nil
	}
	return id, c.run(ctx, putKeys(derived(k, topics)))
}

// derived are the keys of topics.
func derived(k keyring.Keys, topics []string) (all []keyring.TopicKey) {
	ring := keyring.New(k)
	for _, topic := range topics {
		all = append(all, ring.TopicKeys(topic)...)
	}
	return all
}

// KnownTopics lists the topics that have keys: those of deployed flows and of workers, now or before.
func (s *Store) KnownTopics(ctx context.Context) ([]string, error) {
	return readAll(ctx, s, "keys_known", func(v row) (string, error) { return v.text(0), nil })
}

// PutTopicKeys stores derived keys, for logins that may not read the secrets (S1).
func (s *Store) PutTopicKeys(ctx context.Context, keys []keyring.TopicKey) error {
	if len(keys) == 0 {
		return nil
	}
	return s.call(ctx, "store keys of topics", func(c *conn) error { return c.run(ctx, putKeys(keys)) })
}

func putKeys(keys []keyring.TopicKey) step {
	return step{"keys_put", arrays(keys, func(c *columns, k keyring.TopicKey) {
		c.text(k.Topic)
		c.int(int64(k.ID))
		c.bytes(k.Key)
		c.int(k.Signs)
		c.someInt(k.Ends)
	}), nil}
}

// SetSigned lets the space authenticate its messages, or not (S3). Processes follow within half
// a minute.
func (s *Store) SetSigned(ctx context.Context, signed bool) error {
	messages := "signed"
	if !signed {
		messages = "unsigned"
	}
	return s.setting(ctx, "keys_switch", pBool(signed), journal.SpaceSigning, "messages", messages)
}
