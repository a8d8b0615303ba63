package canonical

import "iter"

// Unquote returns what a canonical JSON string says. text, with its quotes,
// must come from this package; the result is undefined otherwise.
func Unquote(text []byte) string { return string(decodeKey(text)) }

// Members yields the keys and values of a canonical object, in their order,
// as texts that lie in object: a key with its quotes. object must come from
// this package. Nothing is decoded, so that a reader who wants one member pays
// for no other.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for pos := 1; pos+1 < len(object); pos++ {
			keyEnd := skipString(object, pos)
			end := skipValue(object, keyEnd+1)
			if !yield(object[pos:keyEnd], object[keyEnd+1:end]) {
				return
			}
			pos = end
		}
	}
}

// Elements yields the elements of a canonical array as texts that lie in array,
// which must come from this package.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for pos := 1; pos+1 < len(array); pos++ {
			end := skipValue(array, pos)
			if !yield(array[pos:end]) {
				return
			}
			pos = end
		}
	}
}
