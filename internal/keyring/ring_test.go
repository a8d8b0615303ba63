package keyring_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/keyring"
)

func root(id int) keyring.Root {
	return keyring.Root{ID: id, Secret: bytes.Repeat([]byte{byte(id)}, keyring.SecretBytes)}
}

func ringOf(roots ...keyring.Root) *keyring.Ring {
	return keyring.New(keyring.Keys{Space: [16]byte{7}, On: true, Now: 1_000_000, Roots: roots})
}

// S1: a MAC holds for its text, its topic and its space, and for nothing else.
func TestS1MACHoldsForItsTextAlone(t *testing.T) {
	t.Parallel()
	r := ringOf(root(1))
	for _, topic := range []string{"", "pay"} {
		mac, err := r.Sign(topic, []byte("head"), []byte("body"))
		require.NoError(t, err)
		require.NoError(t, r.Check(topic, mac, []byte("head"), []byte("body")))
		for name, err := range map[string]error{
			"text":         r.Check(topic, mac, []byte("head"), []byte("bodY")),
			"topic":        r.Check("ship", mac, []byte("head"), []byte("body")),
			"another ring": ringOf(root(2)).Check(topic, mac, []byte("head"), []byte("body")),
			"space": keyring.New(keyring.Keys{On: true, Roots: []keyring.Root{root(1)}}).Check(topic, mac, []byte("head"),
				[]byte("body")),
			"no MAC":    r.Check(topic, "", []byte("head"), []byte("body")),
			"short":     r.Check(topic, mac[:10], []byte("head"), []byte("body")),
			"no digits": r.Check(topic, strings.Replace(mac, "1.", "x.", 1), []byte("head"), []byte("body")),
		} {
			require.ErrorIs(t, err, keyring.ErrForged, name)
		}
	}
}

// S1: who has the key of a topic can speak for that topic alone.
func TestS1AKeyOfATopic(t *testing.T) {
	t.Parallel()
	engine := ringOf(root(1))
	worker := keyring.New(keyring.Keys{On: true, Topics: engine.TopicKeys("pay")})
	mac, err := worker.Sign("pay", []byte("x"))
	require.NoError(t, err)
	require.NoError(t, engine.Check("pay", mac, []byte("x")))
	for _, topic := range []string{"", "ship"} {
		_, err = worker.Sign(topic, []byte("x"))
		require.ErrorIs(t, err, keyring.ErrNoKey)
		require.ErrorIs(t, worker.Check(topic, mac, []byte("x")), keyring.ErrNoKey)
		require.ErrorIs(t, engine.Check(topic, mac, []byte("x")), keyring.ErrForged)
	}
	require.Nil(t, worker.SignEntry([]byte("x")))
}

// S1: a new key checks at once and signs after a while; one that has ended does neither.
func TestS1Rotation(t *testing.T) {
	t.Parallel()
	old, fresh := root(1), root(2)
	fresh.Signs = 1_000_000 + keyring.Grace.Microseconds()
	both := ringOf(old, fresh)
	mac, err := both.Sign("", []byte("x"))
	require.NoError(t, err)
	require.NoError(t, ringOf(old).Check("", mac, []byte("x")), "it signs with the old one")
	fresh.Signs, old.Ends = 500_000, 2_000_000
	mac, err = ringOf(old, fresh).Sign("", []byte("x"))
	require.NoError(t, err)
	require.NoError(t, both.Check("", mac, []byte("x")), "who knows the new one takes it")
	mac, err = ringOf(root(1)).Sign("", []byte("x"))
	require.NoError(t, err)
	require.NoError(t, ringOf(old, fresh).Check("", mac, []byte("x")))
	old.Ends = 900_000
	require.ErrorIs(t, ringOf(old, fresh).Check("", mac, []byte("x")), keyring.ErrForged)
}

// S9: the MAC of an entry holds as long as the space. It is made with a key that every process
// has read; a ring that may be older than the key does not call the entry forged.
func TestS9MACOfAnEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := root(1)
		mac := ringOf(old).SignEntry([]byte("entry"))
		old.Ends = 1
		fresh := root(2)
		fresh.Signs = 1_000_000 // now, as after `keys rotate --now`
		before, r := ringOf(old), ringOf(old, fresh)
		require.NoError(t, r.CheckEntry(mac, []byte("entry")))
		require.ErrorIs(t, r.CheckEntry(mac, []byte("Entry")), keyring.ErrForged)
		require.ErrorIs(t, r.CheckEntry(nil, []byte("entry")), keyring.ErrForged)
		require.ErrorIs(t, ringOf(root(3)).CheckEntry(mac, []byte("entry")), keyring.ErrForged)
		require.Equal(t, mac, r.SignEntry([]byte("entry")), "not everybody has read the new key")

		time.Sleep(keyring.Grace)
		mac = r.SignEntry([]byte("entry"))
		require.NoError(t, r.CheckEntry(mac, []byte("entry")))
		require.ErrorIs(t, before.CheckEntry(mac, []byte("entry")), keyring.ErrStale)
		require.ErrorIs(t, ringOf(old).CheckEntry(mac, []byte("entry")), keyring.ErrForged, "it was read just now")
	})
}

// S15: what a ring keeps does not grow by the topics that strangers name.
func TestS15StrangersTopicsAreNotKept(t *testing.T) {
	t.Parallel()
	r := ringOf(root(1))
	mac, err := r.Sign("pay", []byte("x"))
	require.NoError(t, err)
	size := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := size()
	for i := range 64 {
		require.ErrorIs(t, r.Check(strings.Repeat(string(rune('a'+i)), 1<<20), mac, []byte("x")), keyring.ErrForged)
	}
	require.Less(t, size(), before+16<<20)
	runtime.KeepAlive(r)
}

// S3: a space can run without MACs.
func TestS3WithoutMACs(t *testing.T) {
	t.Parallel()
	r := keyring.New(keyring.Keys{Roots: []keyring.Root{root(1)}})
	mac, err := r.Sign("", []byte("x"))
	require.NoError(t, err)
	require.Empty(t, mac)
	require.NoError(t, r.Check("pay", "", []byte("x")))
	require.NoError(t, r.CheckEntry(r.SignEntry([]byte("x")), []byte("x")), "entries have them all the same (S9)")
	require.ErrorIs(t, r.CheckEntry(nil, []byte("x")), keyring.ErrForged)
}

// The derivations are a contract with workers in other languages and with stored MACs: they never change.
func TestDerivations(t *testing.T) {
	t.Parallel()
	r := ringOf(root(1))
	keys := r.TopicKeys("pay.charge")
	require.Len(t, keys, 1)
	require.Equal(t, "1:4b6859b915df3649943f2132cc6fb3f61af5f4cef230ddcffd88721e874d159e", keys[0].String())
	mac, err := r.Sign("pay.charge", []byte("x"))
	require.NoError(t, err)
	require.Equal(t, "1.ace1ffb1dc4d197f198d3a978e28fcea", mac)
	mac, err = r.Sign("", []byte("x"))
	require.NoError(t, err)
	require.Equal(t, "1.ed64433585b123d7d315b606b8c6e0c4", mac)
	require.Equal(t, "0000000106e78aaf7421d3a2daea43d1bee6fbf5", hex.EncodeToString(r.SignEntry([]byte("x"))))
}

// source is a database with keys.
type source struct {
	mu     sync.Mutex
	keys   keyring.Keys
	err    error
	stored []string
}

func (s *source) Keys(context.Context) (keyring.Keys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys, s.err
}

func (s *source) PutTopicKeys(_ context.Context, keys []keyring.TopicKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		s.stored = append(s.stored, k.Topic)
	}
	return s.err
}

func (s *source) topics() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stored)
}

// A process follows the keys of its space, asks for a key that it misses, and stores those of
// the topics that it signs for.
func TestKeeper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{keys: keyring.Keys{On: true, Roots: []keyring.Root{root(1)}}}
		k, err := keyring.Open(t.Context(), s, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { k.Run(ctx); close(done) }()
		require.NoError(t, k.Know(ctx, "pay"))
		require.NoError(t, k.Know(ctx, "pay"))
		_, err = k.Sign("ship", []byte("x"))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"pay", "ship"}, s.topics())

		s.mu.Lock()
		s.keys.Roots = []keyring.Root{root(1), root(2)}
		s.mu.Unlock()
		time.Sleep(30 * time.Second)
		require.ElementsMatch(t, []string{"pay", "ship", "pay", "pay", "ship", "ship"}, s.topics(), "both keys of both")

		s.mu.Lock()
		s.err = errors.New("away")
		s.mu.Unlock()
		time.Sleep(time.Minute)
		_, err = k.Sign("", []byte("x"))
		require.NoError(t, err, "the ring stays")
		cancel()
		<-done
	})
}

// S13, S1: where the space goes on in another database, which may be older, the keys of topics that
// were stored are stored again, for those who cannot derive them.
func TestS13TheKeysOfTopicsAreStoredAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{keys: keyring.Keys{On: true, Roots: []keyring.Root{root(1)}}}
		k, err := keyring.Open(t.Context(), s, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { k.Run(ctx); close(done) }()
		require.NoError(t, k.Know(ctx, "pay"))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"pay"}, s.topics())
		k.Forget()
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{"pay", "pay"}, s.topics())
		cancel()
		<-done
	})
}

// S2: below 2 µs a message.
func BenchmarkCheck(b *testing.B) {
	r := ringOf(root(1))
	head, body := make([]byte, 200), make([]byte, 700)
	mac, err := r.Sign("pay", head, body)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if r.Check("pay", mac, head, body) != nil {
			b.Fatal("it does not hold")
		}
	}
}
