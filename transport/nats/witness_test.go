package nats_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/keyring"
)

// S13, S2: the witness is the last attestation, outlives its process, and is believed only with
// the engines' MAC.
func TestWitnessIsTheLastAttestation(t *testing.T) {
	t.Parallel()
	keys := func(secret byte) *keyring.Ring {
		return keyring.New(keyring.Keys{On: true, Roots: []keyring.Root{{ID: 1, Secret: bytes.Repeat([]byte{secret}, keyring.SecretBytes)}}})
	}
	cfg := config(devtest.NATS(t))
	cfg.Keys = keys(1)
	first := open(t, cfg)
	got, err := first.Witness(t.Context())
	require.NoError(t, err)
	require.Empty(t, got, "there is none at first")
	for _, text := range []string{"one", "two"} {
		require.NoError(t, first.Attest(t.Context(), text))
	}
	require.NoError(t, first.Close())
	again := open(t, cfg)
	got, err = again.Witness(t.Context())
	require.NoError(t, err)
	require.Equal(t, "two", got)
	cfg.Keys = keys(2)
	require.NoError(t, open(t, cfg).Attest(t.Context(), "a stranger's"))
	_, err = again.Witness(t.Context())
	require.ErrorIs(t, err, keyring.ErrForged)
}
