package collation_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/collation"
)

// spell writes segments in canonical text, as the rule says: a run of four or more equal
// segments is written once (1.9).
func spell(segments []int) string {
	var s strings.Builder
	for i := 0; i < len(segments); {
		n := 1
		for i+n < len(segments) && segments[i+n] == segments[i] {
			n++
		}
		if n >= 4 {
			fmt.Fprintf(&s, ",%d^%d", segments[i], n)
		} else {
			s.WriteString(strings.Repeat(","+strconv.Itoa(segments[i]), n))
		}
		i += n
	}
	return s.String()
}

// TestAddressesHaveOneSpelling: two spellings of one address would be two keys of one instance.
func TestAddressesHaveOneSpelling(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "0", ",", ",0,", ",,0", ", 0", ",-1", ",+1", ",00", ",01", ",0,0,0,0", ",0^3", ",0^4,0", ",0^04", ",0^0", ",0^",
		",^4", ",0^4^4", ",a", ",0^2,0^2", ",100000000", ",0^100001", ",0^2147483648", ",0^99999,1,0",
		",99999999999999999999", ",0x1", ",1_0",
	} {
		_, err := collation.ParseDAD(bad)
		require.ErrorIs(t, err, collation.ErrAddress, "%q", bad)
	}
}

// TestAddressOperations compares the operations on runs with the same operations on a plain
// list of segments (1.9).
func TestAddressOperations(t *testing.T) {
	t.Parallel()
	segment := rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 10, collation.MaxIndex})
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOfN(segment, 1, 40).Draw(t, "segments")
		d, err := collation.ParseDAD(spell(segments))
		require.NoError(t, err)
		require.Equal(t, len(segments), d.Depth())
		require.Equal(t, spell(append(segments[:len(segments):len(segments)], 0)), string(d.Child()))
		index := segment.Draw(t, "index")
		replaced := append(segments[:len(segments)-1:len(segments)-1], index)
		require.Equal(t, spell(replaced), string(d.WithIndex(index)))
		n := rapid.IntRange(1, len(segments)).Draw(t, "prefix")
		require.Equal(t, spell(segments[:n]), string(d.Prefix(n)))
		require.Equal(t, d, d.Prefix(len(segments)+1), "there is no more than the whole")
		require.Equal(t, d.WithIndex(0), d.Base())
		other := rapid.SliceOfN(segment, 1, 9).Draw(t, "other")
		require.Equal(t, slices.Compare(segments, other), d.Compare(collation.DAD(spell(other))), "the order of passes, not of texts")
	})
}

// TestAddressKeys pins the hash that is the key in tables (1.9).
func TestAddressKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // the first 16 bytes of the SHA-256 of the text
		",0":        "bcf5735a1e73af9d0f0eb155c1b0ae87",
		",0,0":      "a02be379d03ef2c0207dc31164e91c02",
		",0^57,3,0": "e463e454a0d27717023b2c317c212d96",
	} {
		require.Equal(t, want, fmt.Sprintf("%x", collation.DAD(text).Key()), text)
	}
}
