package membus

import (
	"time"

	"github.com/quipu-journal/quipu/transport"
)

// decision is one kind of fault that may befall a message.
type decision uint64

const (
	loseMessage decision = iota + 1
	lieAboutLoss
	losePubAck
	duplicateMessage
	loseAck
	delayFirst
	delaySecond
	loseTold
	// howLong is added to a delay's decision to draw its length.
	howLong decision = 100
)

// dice draws a message's decisions from seed, id, decision and count, so that the
// interleaving of goroutines does not matter.
type dice struct {
	seed uint64
	id   string
	n    int
}

// roll is uniform in [0, 1).
func (d dice) roll(k decision) float64 {
	const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211
	h := uint64(fnvOffset)
	for i := range len(d.id) {
		h = (h ^ uint64(d.id[i])) * fnvPrime
	}
	h = mix(h ^ mix(d.seed))
	h = mix(h ^ uint64(k)<<32 ^ uint64(d.n)) //nolint:gosec // a small count
	return float64(h>>11) / (1 << 53)
}

// falls is true with the probability.
func (d dice) falls(k decision, probability float64) bool {
	return probability > 0 && d.roll(k) < probability
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// window remembers message ids for DuplicateWindow, per stream.
type window struct {
	ids  map[windowKey]*sighting
	fifo []*sighting
}

type windowKey struct {
	stream transport.Kind
	id     string
}

type sighting struct {
	key   windowKey
	at    time.Time
	times int
	there bool
}

// sight notes an id. It returns how often the window saw the id before, and whether the
// message is stored, which makes this one a duplicate.
func (w *window) sight(kind transport.Kind, id string, now time.Time) (times int, duplicate bool) {
	for len(w.fifo) > 0 && now.Sub(w.fifo[0].at) >= DuplicateWindow {
		delete(w.ids, w.fifo[0].key)
		w.fifo = w.fifo[1:]
	}
	key := windowKey{kind, id}
	s := w.ids[key]
	if s == nil {
		s = &sighting{key: key, at: now}
		w.ids[key] = s
		w.fifo = append(w.fifo, s)
	}
	times, duplicate = s.times, s.there
	s.times++
	s.there = true
	return times, duplicate
}

// forget notes that the message is not stored: it was lost or refused.
func (w *window) forget(kind transport.Kind, id string) {
	if s := w.ids[windowKey{kind, id}]; s != nil {
		s.there = false
	}
}
