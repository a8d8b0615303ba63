package wire

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzAddress: an address is a claim of where a message belongs, of any bytes, and never a response.
// Of a message as Encode writes it, it is that of the message.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"response","job":"j","row":"r","activity":"a","dad":",0","turn":2,"flow":"f","version":"1","response":{"kind":"terminal","code":200}}`,
		`{"kind":"response","row":"r","turn":2,"response":{"output":NaN},"flow":"f"}`,
		`{"row":1}`, `{"row"`, `[]`, ``, `{"turn":null,"kind":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h := DecodeAddress(b)
		require.Nil(t, h.Response)
		again := DecodeAddress(Encode(h))
		if utf8.ValidString(h.Job + h.Row + h.Activity + h.DAD + h.Flow + h.Version + string(h.Kind)) {
			require.Equal(t, h, again)
		}
	})
}
