package nats_test

import (
	"bytes"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/keyring"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/transport/nats"
)

// witnessKeys are the keys of a space that has one secret.
func witnessKeys(secret byte) *keyring.Ring {
	return keyring.New(keyring.Keys{
		On: true, Roots: []keyring.Root{{ID: 1, Secret: bytes.Repeat([]byte{secret}, keyring.SecretBytes)}},
	})
}

// texts are those of a witness that the bus believes, and the numbers of all.
func texts(t *testing.T, b *nats.Bus) (texts []string, seqs []uint64) {
	t.Helper()
	all, err := b.Witness(t.Context())
	require.NoError(t, err)
	for _, a := range all {
		if seqs = append(seqs, a.Seq); a.Err == nil {
			texts = append(texts, a.Text)
		} else {
			require.ErrorIs(t, a.Err, keyring.ErrForged)
		}
	}
	return texts, seqs
}

// S13, S2: the witness has each attestation, outlives its process, and believes only those with the
// engines' MAC. One with a stranger's replaces nothing.
func TestWitnessHasEachAttestation(t *testing.T) {
	t.Parallel()
	cfg := config(devtest.NATS(t))
	cfg.Keys = witnessKeys(1)
	first := open(t, cfg)
	got, _ := texts(t, first)
	require.Empty(t, got, "there is none at first")
	for _, text := range []string{"two", "one"} {
		require.NoError(t, first.Attest(t.Context(), text))
	}
	require.NoError(t, first.Close())
	again := open(t, cfg)
	cfg.Keys = witnessKeys(2)
	require.NoError(t, open(t, cfg).Attest(t.Context(), "a stranger's"))
	got, seqs := texts(t, again)
	require.Equal(t, []string{"two", "one"}, got)
	require.Len(t, seqs, 3)
	require.NoError(t, again.Retract(t.Context(), seqs[1], seqs[2]))
	require.NoError(t, again.Retract(t.Context(), seqs[1], 1000), "gone already")
	require.NoError(t, again.Attest(t.Context(), "three"))
	got, _ = texts(t, again)
	require.Equal(t, []string{"two", "three"}, got)

	cfg.Prefix, cfg.Keys = "other", witnessKeys(1)
	got, _ = texts(t, open(t, cfg))
	require.Empty(t, got, "of another prefix")
}

// S13: nobody who can only publish pushes an attestation out, or makes the streams' reader read without
// an end. What the engine takes away makes room again. A stream that was deleted begins anew.
func TestWitnessThatIsFull(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	b := open(t, cfg)
	require.NoError(t, b.Attest(t.Context(), "one"))
	nc, js := client(t, server)
	for range 3 * nats.WitnessRoom {
		require.NoError(t, nc.Publish("quipu."+cfg.Space+".mark", []byte("garbage")))
	}
	rollup := natsgo.NewMsg("quipu." + cfg.Space + ".mark")
	rollup.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupAll)
	_, err := js.PublishMsg(t.Context(), rollup)
	require.Error(t, err)
	require.ErrorIs(t, b.Attest(t.Context(), "two"), nats.ErrWitnessFull)
	got, seqs := texts(t, b)
	require.Len(t, got, nats.WitnessRoom)
	require.Equal(t, "one", got[0])
	require.NoError(t, b.Retract(t.Context(), seqs[1:]...))
	require.NoError(t, b.Attest(t.Context(), "two"))
	got, _ = texts(t, b)
	require.Equal(t, []string{"one", "two"}, got)

	require.NoError(t, js.DeleteStream(t.Context(), "QUIPU_"+cfg.Space+"_MARK"))
	require.NoError(t, b.Attest(t.Context(), "three"))
	got, seqs = texts(t, b)
	require.Equal(t, []string{"three"}, got)
	require.Equal(t, []uint64{1}, seqs)
}

// S13: a stream that would drop its attestations gets the settings by which it keeps them, before one is
// left there. What else an operator has set stays.
func TestWitnessThatWouldDropIsChanged(t *testing.T) {
	t.Parallel()
	server := devtest.NATS(t)
	cfg := config(server)
	_, js := client(t, server)
	name := "QUIPU_" + cfg.Space + "_MARK"
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: name, Subjects: []string{"quipu." + cfg.Space + ".mark"}, Description: "theirs", Compression: jetstream.S2Compression,
		MaxMsgs: 1, Discard: jetstream.DiscardOld, MaxAge: time.Hour, AllowRollup: true,
	})
	require.NoError(t, err)
	b := open(t, cfg)
	_, err = js.Publish(t.Context(), "quipu."+cfg.Space+".mark", []byte("one"))
	require.NoError(t, err)
	got, _ := texts(t, b)
	require.Equal(t, []string{"one"}, got)
	require.NoError(t, b.Attest(t.Context(), "two"))
	got, _ = texts(t, b)
	require.Equal(t, []string{"one", "two"}, got)
	stream, err := js.Stream(t.Context(), name)
	require.NoError(t, err)
	is := stream.CachedInfo().Config
	require.Equal(t, "theirs", is.Description)
	require.Equal(t, jetstream.S2Compression, is.Compression)
	require.Equal(t, jetstream.DiscardNew, is.Discard)
	require.EqualValues(t, nats.WitnessRoom, is.MaxMsgs)
	require.Zero(t, is.MaxAge)
	require.False(t, is.AllowRollup)
}
