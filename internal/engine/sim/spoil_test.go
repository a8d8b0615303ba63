package sim

import (
	"hash/fnv"
	"slices"

	"github.com/quipu-journal/quipu/transport"
)

// hundred is how often a message of a storm comes again (F12).
const hundred = 100

// spoil is what the bus does to messages besides its own faults: one comes a hundred times, or
// again with one bit flipped.
func (w *world) spoil(msgs []transport.Message) {
	f := &w.features
	if w.calm || f.storm == 0 && f.flips == 0 {
		return
	}
	for i := range msgs {
		h := fnv.New64a()
		_, _ = h.Write([]byte(msgs[i].ID()))
		lot := h.Sum64() ^ w.seed
		if f.storm > 0 && lot%7 == 0 {
			f.storm--
			for range hundred {
				w.again(&msgs[i], -1)
			}
		}
		if f.flips > 0 && lot%3 == 0 {
			f.flips--
			f.flipped++
			w.again(&msgs[i], int(lot>>8%1_000_003)) //nolint:gosec // a small number
		}
	}
}

// again puts a message on the bus in its wire form, with one bit flipped that lot chooses: mostly
// of its body, sometimes of a header; none if lot is negative.
func (w *world) again(m *transport.Message, lot int) {
	headers := map[string]string{}
	var names []string
	transport.EncodeHeader(m, func(name, value string) {
		headers[name] = value
		names = append(names, name)
	})
	body := slices.Clone(m.Body)
	flip := func(b []byte) []byte {
		n := lot / 4 % (8 * len(b))
		b[n/8] ^= 1 << (n % 8)
		return b
	}
	switch {
	case lot < 0:
	case lot%4 > 0:
		body = flip(body)
	default:
		name := names[lot/4%len(names)]
		headers[name] = string(flip([]byte(headers[name])))
	}
	w.bus.Inject(m.To, headers, body)
}
