package durable

import (
	"runtime"
	"sync/atomic"
)

// goroutine is what identifies the goroutine of a branch.
type goroutine struct {
	number uint64
	bottom uintptr // the same of all branches
}

// branches is how many goroutines of branches there are in this process.
var branches atomic.Int64

// within reports that the caller is in the branch's goroutine.
func (b *branch) within() bool {
	return b.alone() && bottom() == b.self.bottom || number() == b.self.number
}

// alone reports that no other branch of this process has a goroutine.
func (b *branch) alone() bool {
	if branches.Load() != 1 {
		return false
	}
	select {
	case <-b.over:
		return false // the one is another
	default:
		return true
	}
}

// maxFrames bounds the stacks whose bottom is looked for.
const maxFrames = 64

// bottom is the function in which the calling goroutine began, 0 where its stack is too deep.
// It costs a tenth of number.
func bottom() uintptr {
	var frames [maxFrames]uintptr
	n := runtime.Callers(1, frames[:])
	if n < 2 || n == maxFrames {
		return 0
	}
	f := runtime.FuncForPC(frames[n-2] - 1) // the last is runtime.goexit
	if f == nil {
		return 0
	}
	return f.Entry()
}

// number is the number of the calling goroutine. It walks the stack and prints it, which is
// slow.
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
