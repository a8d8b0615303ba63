package nats

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/transport"
)

const (
	// troubleFor is how long a refusal stands that nothing has repeated or refuted. Rows that
	// wait are tried again more often than that.
	troubleFor = time.Minute
	// lasting is how long a trouble stands before its end is logged.
	lasting = 5 * time.Second
	// maxTroubles bounds what is remembered.
	maxTroubles = 1000
)

// troubles are the troubles that this process knows of, each under its kind and name.
type troubles struct {
	some atomic.Bool // whether there may be any, for the way of every message

	mu   sync.Mutex
	all  map[string]*trouble
	told map[string]time.Time // when each was logged last
}

type trouble struct {
	transport.Trouble
	last time.Time // when it was seen last
}

// add notes a trouble, and says whether it is to be logged.
func (t *troubles) add(x transport.Trouble, now time.Time) (say bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := string(x.Kind) + " " + x.Name
	known := t.all[key]
	if known == nil {
		if len(t.all) >= maxTroubles {
			return false
		}
		if t.all == nil {
			t.all, t.told = map[string]*trouble{}, map[string]time.Time{}
		}
		known = &trouble{Trouble: transport.Trouble{Since: now}}
		t.all[key] = known
		t.some.Store(true)
	}
	x.Since = known.Since
	known.Trouble, known.last = x, now
	if say = now.Sub(t.told[key]) >= tellAgain; say {
		maps.DeleteFunc(t.told, func(_ string, at time.Time) bool { return now.Sub(at) >= tellAgain })
		t.told[key] = now
	}
	return say
}

// clear forgets a trouble, and says whether there was one long enough for its end to be logged.
func (t *troubles) clear(kind transport.TroubleKind, name string, now time.Time) (say bool) {
	if !t.some.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := string(kind) + " " + name
	was := t.all[key]
	delete(t.all, key)
	t.some.Store(len(t.all) > 0)
	return was != nil && now.Sub(was.Since) >= lasting
}

// list returns the troubles by kind and name. Refusals that nothing has repeated are forgotten.
func (t *troubles) list(now time.Time) []transport.Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(_ string, x *trouble) bool {
		return (x.Kind == transport.TroubleRefused || x.Kind == transport.TroubleRoom) && now.Sub(x.last) >= troubleFor
	})
	t.some.Store(len(t.all) > 0)
	out := make([]transport.Trouble, 0, len(t.all))
	for _, x := range t.all {
		out = append(out, x.Trouble)
	}
	slices.SortFunc(out, func(a, b transport.Trouble) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	return out
}

// Troubles lists what keeps messages from going their way, as far as this process knows: streams
// that refuse its messages, topics that have no room, and, in an engine, streams and consumers
// whose settings break the promise. It asks nobody.
func (b *Bus) Troubles() []transport.Trouble { return b.troubles.list(time.Now()) }

// trouble notes a trouble, and logs it now and then.
func (b *Bus) trouble(x transport.Trouble) {
	if b.troubles.add(x, time.Now()) {
		b.cfg.Log.Warn("messages cannot go their way", "space", b.cfg.Space, "kind", string(x.Kind), "of", x.Name, "error", x.Text)
	}
}

// relieved ends a trouble.
func (b *Bus) relieved(kind transport.TroubleKind, name string) {
	if b.troubles.clear(kind, name, time.Now()) {
		b.cfg.Log.Info("messages go their way again", "space", b.cfg.Space, "kind", string(kind), "of", name)
	}
}

// heard learns what became of a message that was sent.
func (b *Bus) heard(s *sent, err error) {
	kind := s.kind
	b.settled(kind, strings.TrimPrefix(s.msg.Subject, b.subject(transport.ToWork(""))), len(s.msg.Data), err == nil)
	if err == nil {
		if b.troubles.some.Load() {
			b.relieved(transport.TroubleRefused, b.streamName(kind))
		}
		return
	}
	full, silent := errors.Is(err, transport.ErrFull), errors.Is(err, transport.ErrSilent)
	if !full && !silent || b.ctx.Err() != nil || !b.nc.IsConnected() {
		return // of a stream or server that is away the loops and Check tell
	}
	name := b.streamName(kind)
	held, remedy := "", "look at the NATS server: its log, its disk, and whether JetStream runs there; an engine makes a stream that is missing"
	if full {
		held = b.rooms.filled(kind)
		remedy = "find out whose messages are in it (quipu top), or give it more room (--nats-max-mib)"
	}
	b.trouble(transport.Trouble{
		Kind: transport.TroubleRefused, Name: name, Queue: kind.String(),
		Text: fmt.Sprintf("the stream %s takes no messages%s: %s: %s", name, held, reason(err), remedy),
	})
	if kind == transport.Work {
		b.rooms.ask()
	}
}

// reason is the last part of an error of a PubAck, which is the server's own text.
func reason(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, ": "); at >= 0 {
		return text[at+2:]
	}
	return text
}
