package keyring

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// SecretBytes is the size of a root secret and of every key.
	SecretBytes = 32
	// MACBytes is the size of a MAC.
	MACBytes = 16
	// EntryMACBytes is the size of the MAC of an entry, with the id of its key.
	EntryMACBytes = 4 + MACBytes
	// Grace is how long a new key only checks before it signs. By then every process has
	// read it.
	Grace = time.Minute
	// Keep is how long the key before it still holds.
	Keep = 24 * time.Hour
	// MaxKeys bounds the keys that a space keeps.
	MaxKeys = 1000
)

// Errors of a check and of a signature.
var (
	// ErrForged is a MAC that is missing, made by no key of the ring, or not of this text.
	ErrForged = errors.New("it is not authentic")
	// ErrNoKey says that this process has no key for the topic: its login may not read it,
	// or it does not exist yet.
	ErrNoKey = errors.New("no key")
	// ErrStale says that the keys were read too long ago to tell: read them, and check again.
	ErrStale = errors.New("the keys of the space were read too long ago")
)

// Root is one root secret of a space. Times are the database's, in microseconds.
type Root struct {
	ID     int    // from 1; a later key has a higher one
	Secret []byte // SecretBytes
	Signs  int64  // it signs from then on
	Ends   int64  // from then on its MACs of messages do not hold; 0: they hold
}

// TopicKey is a key that was derived for one topic; the rest is as in Root.
type TopicKey struct {
	Topic       string
	ID          int
	Key         []byte
	Signs, Ends int64
}

// String is the key as a worker in another language is given it: ID:HEX.
func (k TopicKey) String() string { return strconv.Itoa(k.ID) + ":" + hex.EncodeToString(k.Key) }

// Keys are what a login can read of a space's keys.
type Keys struct {
	Space  [16]byte // the space's id, the salt of each derivation
	On     bool     // false: the space runs without MACs
	Now    int64    // the database's clock
	Roots  []Root   // none if the login may not read them
	Topics []TopicKey
}

// Ring is the keys of a space at one moment. It is safe for concurrent use.
type Ring struct {
	keys   Keys
	loaded time.Time
	engine []*key
	entry  []*key

	mu     sync.RWMutex
	topics map[string][]*key
}

// New makes the ring.
func New(k Keys) *Ring {
	slices.SortFunc(k.Roots, func(a, b Root) int { return a.ID - b.ID })
	slices.SortFunc(k.Topics, func(a, b TopicKey) int { return a.ID - b.ID })
	r := &Ring{keys: k, loaded: time.Now(), topics: map[string][]*key{}}
	for _, root := range k.Roots {
		r.engine = append(r.engine, newKey(root, derive(root.Secret, k.Space, "engine")))
		r.entry = append(r.entry, newKey(root, derive(root.Secret, k.Space, "entry")))
	}
	if len(k.Roots) == 0 {
		for _, t := range k.Topics {
			r.topics[t.Topic] = append(r.topics[t.Topic], newKey(Root{ID: t.ID, Signs: t.Signs, Ends: t.Ends}, t.Key))
		}
	}
	return r
}

// On says whether the space authenticates its messages.
func (r *Ring) On() bool { return r.keys.On }

// Space is the id of the space whose keys they are.
func (r *Ring) Space() [16]byte { return r.keys.Space }

// Derives says whether the ring has the root secrets.
func (r *Ring) Derives() bool { return len(r.keys.Roots) > 0 }

// newest is the id of the newest root secret, 0 without them.
func (r *Ring) newest() int {
	if n := len(r.keys.Roots); n > 0 {
		return r.keys.Roots[n-1].ID
	}
	return 0
}

// TopicKeys derives the keys of a topic that hold, the newest last; none without the roots.
func (r *Ring) TopicKeys(topic string) []TopicKey {
	var all []TopicKey
	for _, root := range r.keys.Roots {
		if root.Ends == 0 || root.Ends > r.now() {
			all = append(all,
				TopicKey{topic, root.ID, derive(root.Secret, r.keys.Space, "topic\x00"+topic), root.Signs, root.Ends})
		}
	}
	return all
}

// Sign returns the MAC of a text, in parts, as it stands in a message: ID.HEX. topic is
// that of the key; "" is the engine's. In a space without MACs it is "". The error is
// ErrNoKey.
func (r *Ring) Sign(topic string, text ...[]byte) (string, error) {
	if !r.On() {
		return "", nil
	}
	now := r.now()
	var by *key
	keys, derived := r.keysOf(topic)
	for _, k := range keys { // the newest that signs; a first key may sign before its time
		if k.Ends == 0 || k.Ends > now {
			if by == nil || k.Signs <= now {
				by = k
			}
		}
	}
	if by == nil {
		return "", noKey(topic)
	}
	if derived {
		r.keep(topic, keys)
	}
	mac := by.sum(text)
	b := append(strconv.AppendInt(make([]byte, 0, 64), int64(by.ID), 10), '.')
	return string(hex.AppendEncode(b, mac[:])), nil
}

// Check says whether the MAC is of the text. In a space without MACs everything passes.
// The error is ErrForged, or ErrNoKey where this process cannot tell.
func (r *Ring) Check(topic, mac string, text ...[]byte) error {
	if !r.On() {
		return nil
	}
	id, sum, err := readMAC(mac)
	if err != nil {
		return err
	}
	keys, derived := r.keysOf(topic)
	if len(keys) == 0 {
		return noKey(topic)
	}
	now := r.now()
	for _, k := range keys {
		if k.ID != id || k.Ends != 0 && k.Ends <= now {
			continue
		}
		if want := k.sum(text); hmac.Equal(want[:], sum[:]) {
			if derived {
				r.keep(topic, keys)
			}
			return nil
		}
		return fmt.Errorf("%w: its MAC is not that of key %d", ErrForged, id)
	}
	return fmt.Errorf("%w: no key %d holds", ErrForged, id)
}

func noKey(topic string) error {
	if topic == "" {
		return fmt.Errorf("%w of the engine: the database login may not read the space's keys", ErrNoKey)
	}
	return fmt.Errorf("%w of topic %s: the database login may not read it, or no flow that is deployed has the topic", ErrNoKey, topic)
}

// readMAC reads ID.HEX.
func readMAC(text string) (id int, mac [MACBytes]byte, err error) {
	if text == "" {
		return 0, mac, fmt.Errorf("%w: it has no MAC", ErrForged)
	}
	number, digits, _ := strings.Cut(text, ".")
	id, err = strconv.Atoi(number)
	if err == nil && len(digits) == hex.EncodedLen(MACBytes) {
		var spelled [2 * MACBytes]byte // no part of the message leaves the stack
		copy(spelled[:], digits)
		if _, err = hex.Decode(mac[:], spelled[:]); err == nil {
			return id, mac, nil
		}
	}
	return 0, mac, fmt.Errorf("%w: its MAC cannot be read", ErrForged)
}

// SignEntry returns the MAC of an entry: four bytes with the key's id, then the MAC. It
// takes the newest key that every process has read by now. nil: the process has no root
// secret.
func (r *Ring) SignEntry(text ...[]byte) []byte {
	var by *key
	for _, k := range r.entry {
		if by == nil || k.Signs+Grace.Microseconds() <= r.now() {
			by = k
		}
	}
	if by == nil {
		return nil
	}
	mac := by.sum(text)
	return append(binary.BigEndian.AppendUint32(nil, uint32(by.ID)), mac[:]...) //nolint:gosec // at most MaxKeys
}

// CheckEntry says whether a MAC of SignEntry is of the text. Keys that have ended hold for
// it, too. The error is ErrForged; ErrNoKey for a process without root secrets; ErrStale
// where the key may be newer than this ring.
func (r *Ring) CheckEntry(mac []byte, text ...[]byte) error {
	if len(r.entry) == 0 {
		return noKey("")
	}
	if len(mac) != EntryMACBytes {
		return fmt.Errorf("%w: it has no MAC", ErrForged)
	}
	id := int(binary.BigEndian.Uint32(mac))
	for _, k := range r.entry {
		if k.ID != id {
			continue
		}
		if want := k.sum(text); hmac.Equal(want[:], mac[4:]) {
			return nil
		}
		return fmt.Errorf("%w: its MAC is not that of key %d", ErrForged, id)
	}
	if r.age() > Grace/2 {
		return fmt.Errorf("%w: they have no key %d", ErrStale, id)
	}
	return fmt.Errorf("%w: the space has no key %d", ErrForged, id)
}

// age is how long ago the keys were read. Where the machine stood still one of the two
// clocks may have stood, too.
func (r *Ring) age() time.Duration { return max(time.Since(r.loaded), time.Since(r.loaded.Round(0))) }

// keysOf returns the keys of a topic, and of the engine for "". derived says that they were derived
// for this call: they are kept once a MAC holds.
func (r *Ring) keysOf(topic string) (keys []*key, derived bool) {
	if topic == "" {
		return r.engine, false
	}
	r.mu.RLock()
	keys, known := r.topics[topic]
	r.mu.RUnlock()
	if known || !r.Derives() {
		return keys, false
	}
	for _, t := range r.TopicKeys(topic) {
		keys = append(keys, newKey(Root{ID: t.ID, Signs: t.Signs, Ends: t.Ends}, t.Key))
	}
	return keys, true
}

// keep keeps the derived keys of a topic that somebody with a key has named: a stranger's
// message can name any.
func (r *Ring) keep(topic string, keys []*key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.topics) < maxTopics {
		r.topics[topic] = keys
	}
}

// maxTopics bounds the topics whose keys a ring keeps derived.
const maxTopics = 10_000

// now is the database's clock.
func (r *Ring) now() int64 { return r.keys.Now + time.Since(r.loaded).Microseconds() }

// key is a key with its hashes, ready to be used.
type key struct {
	Root

	hashes sync.Pool
}

func newKey(of Root, secret []byte) *key {
	k := &key{Root: of}
	k.hashes.New = func() any { return &hasher{Hash: hmac.New(sha256.New, secret)} }
	return k
}

// hasher is a hash under a key, with room for its sum.
type hasher struct {
	hash.Hash

	whole [sha256.Size]byte
}

func (k *key) sum(text [][]byte) (mac [MACBytes]byte) {
	h := k.hashes.Get().(*hasher) //nolint:forcetypeassert // New makes nothing else
	defer k.hashes.Put(h)
	h.Reset()
	for _, part := range text {
		h.Write(part)
	}
	copy(mac[:], h.Sum(h.whole[:0]))
	return mac
}

// derive makes the key for a purpose.
func derive(secret []byte, space [16]byte, purpose string) []byte {
	b, err := hkdf.Key(sha256.New, secret, space[:], "quipu v1 "+purpose, SecretBytes)
	if err != nil {
		panic(fmt.Sprintf("keyring: %v", err)) // only for a size over 8160 bytes
	}
	return b
}
