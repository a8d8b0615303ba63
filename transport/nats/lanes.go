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
	// asideFor is how long this process leaves a lane to others, up to twice that.
	asideFor = time.Second
	// stayFor is how long a lane that came back is not given up again: perhaps nobody
	// else takes it.
	stayFor = 15 * time.Second
)

var errAside = errors.New("the lane is left to another engine")

// pin is a consumer's knowledge of its lane's pin. The server gives the lane's messages
// to one process as long as that process pulls in time (7.6).
type pin struct {
	mu    sync.Mutex
	id    string    // the server's id for this process's pin; "": it does not have the lane
	since int64     // the last pull sent before the id was known
	stay  time.Time // do not give the lane up before
}

// pullTimes are the life of a pull request and its heartbeat. For a lane the next pull must come
// before the pin lapses.
func (b *Bus) pullTimes(from transport.Destination) (expires, heartbeat time.Duration) {
	expires, heartbeat = b.cfg.PullExpires, b.cfg.Heartbeat
	if from.Kind == transport.Lane {
		expires = min(expires, b.cfg.Pin*2/3)
	}
	return expires, min(heartbeat, expires/2)
}

// ask adds group and pin to the body of a pull request.
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

// heard takes the pin's id from a message; pulls is how many pulls were sent by then.
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

// refused is called when the server no longer accepts the pin of a pull.
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

// giveUp forgets the pin, and says whether there was one.
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

// unpin gives the lane up, so that the server need not wait for the pin to lapse; a lost
// message only costs that wait. Call it when no pull is open.
func (c *consumer) unpin() {
	if !c.lane.giveUp() {
		return
	}
	subject := c.bus.api + "CONSUMER.UNPIN." + c.bus.streamName(c.from.Kind) + "." + durableName(c.from)
	_ = c.bus.nc.Publish(subject, []byte(`{"group":"`+pinGroup+`"}`))
}

// balance gives lanes up while this process has more than its share, until the bus is
// closed. So a second process gets its half. A lane that nobody else takes comes back,
// since every engine pulls from all of them.
func (b *Bus) balance() {
	tick := time.NewTicker(balanceEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case now := <-tick.C:
			n := b.cfg.Engines()
			if b.rooms.engines.Store(int64(n)); n > 1 {
				b.pulling.leave((b.cfg.Lanes+n-1)/n, now)
			}
		}
	}
}

// leave gives up the lanes above the share.
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

// pullToken is the last token of a pull's inbox: its number, and how many messages it
// requests, because the server does not repeat that when it refuses the pull.
func pullToken(pull int64, batch int) string {
	return strconv.FormatInt(pull, 36) + "-" + strconv.Itoa(batch)
}

func readPullToken(token string) (pull int64, batch int) {
	number, asked, _ := strings.Cut(token, "-")
	pull, _ = strconv.ParseInt(number, 36, 64)
	batch, _ = strconv.Atoi(asked)
	return pull, batch
}
