package keyring

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzCheck: a MAC holds only for the text that it was made of, and the text of a MAC only in one
// value; anything else is forged, and nothing panics (S9).
func FuzzCheck(f *testing.F) {
	r := New(Keys{Space: [16]byte{1}, On: true, Now: 5, Roots: []Root{
		{ID: 1, Secret: bytes.Repeat([]byte{1}, SecretBytes)},
		{ID: 2, Secret: bytes.Repeat([]byte{2}, SecretBytes), Signs: 3},
	}})
	made, err := r.Sign("pay", []byte("text"))
	require.NoError(f, err)
	f.Add(made, r.SignEntry([]byte("text")), []byte("text"), uint16(7))
	f.Add("1.", []byte(nil), []byte(nil), uint16(0))
	f.Add("+2.00", make([]byte, EntryMACBytes), []byte("x"), uint16(1))
	// of a ring that is half a minute old
	refused := func(err error) bool { return errors.Is(err, ErrForged) || errors.Is(err, ErrStale) }
	f.Fuzz(func(t *testing.T, mac string, entry, text []byte, bit uint16) {
		good, err := r.Sign("pay", text)
		require.NoError(t, err)
		require.NoError(t, r.Check("pay", good, text))
		require.ErrorIs(t, r.Check("ship", good, text), ErrForged, "of another topic")
		require.ErrorIs(t, r.Check("pay", good, text, []byte{0}), ErrForged, "more text")
		if err := r.Check("pay", mac, text); err != nil {
			require.ErrorIs(t, err, ErrForged)
		} else {
			id, sum, err := readMAC(mac)
			require.NoError(t, err)
			require.True(t, id == 1 || id == 2)
			require.Len(t, sum, MACBytes)
		}
		own := r.SignEntry(text)
		require.NoError(t, r.CheckEntry(own, text))
		if err := r.CheckEntry(entry, text); err != nil {
			require.True(t, refused(err), "%v", err)
		}
		own[int(bit/8)%len(own)] ^= 1 << (bit % 8)
		require.True(t, refused(r.CheckEntry(own, text)), "a flipped bit")
	})
}
