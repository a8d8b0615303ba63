//go:build faults || race

package fault

import "sync/atomic"

// Enabled says whether this build has fault points.
const Enabled = true

var hook atomic.Pointer[func(Point, string)]

// Set sets the function that every point calls, in the goroutine that passes it. about says what
// passes: the kind of a message and its activity, a topic, or the name of an effect; at K16 the
// body of the message.
func Set(f func(p Point, about string)) { hook.Store(&f) }

// At calls the function of Set, if there is one.
func At(p Point, about string) {
	if f := hook.Load(); f != nil {
		(*f)(p, about)
	}
}
