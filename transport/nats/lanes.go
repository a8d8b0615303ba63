package nats

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

const (
	// pinGroup is the one priority group of a lane's consumer.
	pinGroup  = "engine"
	pinHeader = "Nats-Pin-Id"
	// balanceEvery is the time between two looks at the shares of the engines.
	balanceEvery = time.Second
	// asideFor is how long a lane that was given up is left to others, up to twice that.
	asideFor = time.Second
	// stayFor is how long a lane that was given up is not given up again, should it come
	// back: nobody else may have taken it.
	stayFor = 15 * time.Second
)

var errAside = errors.New("the lane is left to another engine")

// pin is what a consumer of a lane knows of its place at the server, which gives the
// lane's messages to one process as long as that one asks for more in time (7.6).
type pin struct {
	mu    sync.Mutex
	id    string    // names this process in its pulls; "": it does not have the lane
	since int64     // the last pull that was sent before the id was known
	stay  time.Time // the lane is not given up before
}

// pins says whether deliveries from there go to one process.
func (b *Bus) pins(from transport.Destination) bool {
	return from.Kind == transport.Lane && !b.cfg.Unpinned
}

// pullTimes are how long a pull request lives, and how often it is heard of. Where
// deliveries are pinned the next one has to come before the pin lapses.
func (b *Bus) pullTimes(from transport.Destination) (expires, heartbeat time.Duration) {
	expires, heartbeat = b.cfg.PullExpires, b.cfg.Heartbeat
	if b.pins(from) {
		expires = min(expires, b.cfg.Pin*2/3)
	}
	return expires, min(heartbeat, expires/2)
}

// ask adds to the body of a pull request who asks.
func (p *pin) ask(body []byte) []byte {
	if p == nil {
		return body
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	body = append(body, `,"group":"`+pinGroup+`"`...)
	if p.id != "" {
		body = append(body, `,"id":"`+p.id+`"`...)
	}
	return body
}

// heard takes the name of this process from a message; pulls is how many were sent by then.
func (p *pin) heard(id string, pulls int64) {
	if p == nil || id == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id != id {
		p.id, p.since = id, pulls
	}
}

// refused is told that the server does not know the name in a pull any more.
func (p *pin) refused(pull int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if pull > p.since {
		p.id = ""
	}
}

// movable says whether this process has the lane, and whether it may give it up.
func (p *pin) movable(now time.Time) (has, may bool) {
	if p == nil {
		return false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id != "", p.id != "" && now.After(p.stay)
}

// giveUp forgets the name, and says whether there was one.
func (p *pin) giveUp() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.id != ""
	p.id, p.stay = "", time.Now().Add(stayFor)
	return had
}

// unpin gives the lane up, so that the server need not wait for the pin to lapse. It is
// called when no pull is open any more. What is lost on the way costs that wait.
func (c *consumer) unpin() {
	if !c.lane.giveUp() {
		return
	}
	subject := c.bus.api + "CONSUMER.UNPIN." + c.bus.streamName(c.from.Kind) + "." + durableName(c.from)
	_ = c.bus.nc.Publish(subject, []byte(`{"group":"`+pinGroup+`"}`))
}

// balance gives lanes up while this process has more than its share of them, until the
// bus is closed. So a second process gets its half. A lane that nobody else takes comes
// back: every engine asks for all of them.
func (b *Bus) balance() {
	tick := time.NewTicker(balanceEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case now := <-tick.C:
			if n := b.cfg.Engines(); n > 1 {
				b.pulling.leave((b.cfg.Lanes+n-1)/n, now)
			}
		}
	}
}

// leave gives up what is more than a share of so many lanes.
func (p *pulling) leave(share int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pinned, movable := 0, []*consumer(nil)
	for _, c := range p.from {
		has, may := c.lane.movable(now)
		if has {
			pinned++
		}
		if may {
			movable = append(movable, c)
		}
	}
	rand.Shuffle(len(movable), func(i, j int) { movable[i], movable[j] = movable[j], movable[i] })
	for _, c := range movable[:max(0, min(pinned-share, len(movable)))] {
		c.end(errAside)
	}
}

// end ends the present binding.
func (c *consumer) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.binding != nil {
		c.binding.fail(why)
	}
}

// pullToken is the last token of the inbox of a pull: its number, and how many messages
// it asks for, since the server does not say what it refuses.
func pullToken(pull int64, batch int) string {
	return strconv.FormatInt(pull, 36) + "-" + strconv.Itoa(batch)
}

func readPullToken(token string) (pull int64, batch int) {
	number, asked, _ := strings.Cut(token, "-")
	pull, _ = strconv.ParseInt(number, 36, 64)
	batch, _ = strconv.Atoi(asked)
	return pull, batch
}
