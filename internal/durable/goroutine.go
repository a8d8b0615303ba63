package durable

import "runtime"

// within reports that the caller is in the branch's goroutine.
func (b *branch) within() bool { return number() == b.self }

// number is the number of the calling goroutine, which is in the text of its stack alone.
func number() (id uint64) {
	var text [len("goroutine ") + 20]byte
	for _, c := range text[len("goroutine "):runtime.Stack(text[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + uint64(c-'0')
	}
	return id
}
