package engine

import (
	"sync"
	"time"

	"github.com/quipu-journal/quipu/collation"
)

// clockAge bounds the age of the reading from which time is told (J5).
const clockAge = time.Second

// clockTrip bounds how long such a reading may have been under way: by so much it is behind.
const clockTrip = 50 * time.Millisecond

// clock tells the database's time from this process's last reading of it (J5). All loops share
// it, so that what one caller does after the other has the later time, whichever loop took it.
type clock struct {
	mu      sync.Mutex
	reading collation.Micros
	at      time.Time // when the reading arrived, by our clock
	quick   bool      // the reading was not long under way
	last    collation.Micros
}

// set takes a reading that was asked for at began and has just arrived. It replaces no better one,
// which is one that is less behind.
func (c *clock) set(reading collation.Micros, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, reading)
	if quick := time.Since(began) < clockTrip; !c.good() || quick && reading >= c.estimate() {
		c.reading, c.at, c.quick = reading, time.Now(), quick
	}
}

// good says whether time may be told from the reading.
func (c *clock) good() bool { return c.quick && time.Since(c.at) < clockAge }

// tell returns a time that is no earlier than any told or read before, and behind the database's by
// less than clockTrip; false if there is no recent reading that was quick. Only a database whose
// clock was set back by more makes it go back.
func (c *clock) tell() (collation.Micros, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.good() {
		return 0, false
	}
	now := c.estimate()
	if ahead := c.last - now; ahead > 0 && ahead < collation.Micros(clockTrip.Microseconds()) {
		now = c.last + 1 // more has passed since: the estimate is behind
	}
	c.last = now
	return now, true
}

// lastEstimate returns the time by the last reading, however old.
func (c *clock) lastEstimate() collation.Micros {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimate()
}

func (c *clock) estimate() collation.Micros {
	return c.reading + collation.Micros(time.Since(c.at).Microseconds())
}
