//go:build faults

package fault

import "sync/atomic"

// Enabled says whether this build has fault points.
const Enabled = true

var hook atomic.Pointer[func(Point, string)]

// Set has f called at every point, by the goroutine that passes it, with what
// passes: the kind of a message and its activity, a topic, the name of an effect;
// at K16 the body of the message.
func Set(f func(p Point, about string)) { hook.Store(&f) }

// At is passed by a goroutine.
func At(p Point, about string) {
	if f := hook.Load(); f != nil {
		(*f)(p, about)
	}
}
