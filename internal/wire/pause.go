package wire

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of suspensions.
const (
	MaxPauses       = 1000      // in one suspension
	MaxPauseName    = 200       // bytes
	MaxPauseBytes   = MaxInline // of one suspension, including the inputs of its children
	MaxPosition     = 200       // bytes
	maxPauseText    = 512       // bytes of a topic, a key, a flow's name or version
	maxPauseMicros  = MaxRanUS
	noPauseOfItself = "neither a sleep, nor a signal, nor a child"
)

// SuspendedUntil is the response of a function that waits for the pauses.
func SuspendedUntil(pauses []Pause) *Response {
	return &Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: pauses}
}

// suspended checks the response of a suspended function.
func (r *Response) suspended() (*journal.Response, error) {
	if r.Code != collation.CodeOK || r.Output != nil || r.Ref != "" || r.Error != nil || r.RetryAfterMS != 0 {
		return nil, fmt.Errorf("%w: a suspension has code 200 and pauses, nothing else", ErrMalformed)
	}
	if len(r.Pauses) == 0 || len(r.Pauses) > MaxPauses {
		return nil, fmt.Errorf("%w: a suspension with %d pauses: 1 to %d are allowed", ErrMalformed, len(r.Pauses), MaxPauses)
	}
	out := &journal.Response{
		Kind: r.Kind, Code: r.Code, Began: r.BeganUS, Ran: r.RanUS, Pauses: make([]journal.Pause, len(r.Pauses)),
	}
	seen := make(map[journal.PauseRef]bool, len(r.Pauses))
	size := 0
	for i := range r.Pauses {
		p, err := r.Pauses[i].journal()
		if err != nil {
			return nil, fmt.Errorf("%w: pause %d: %w", ErrMalformed, i, err)
		}
		// The recorded size counts: the canonical form of an input may be longer.
		if size += r.Pauses[i].Size() - len(r.Pauses[i].Input) + len(p.Input); size > MaxPauseBytes {
			return nil, fmt.Errorf("%w: pause %d: with it they have %d bytes, the limit of a suspension is %d", ErrMalformed, i, size, MaxPauseBytes)
		}
		id := journal.PauseRef{Kind: p.Kind, Name: p.Name}
		if seen[id] {
			return nil, fmt.Errorf("%w: pause %d: %s %q is named twice", ErrMalformed, i, p.Kind, p.Name)
		}
		seen[id] = true
		out.Pauses[i] = p
	}
	return out, nil
}

// Size is roughly how many bytes the pause adds to its suspension.
func (p *Pause) Size() int {
	return len(p.Name) + len(p.Position) + len(p.Topic) + len(p.Key) + len(p.Flow) + len(p.Version) + len(p.Input) + 64
}

func (p *Pause) journal() (journal.Pause, error) {
	out := journal.Pause{
		PauseRef: journal.PauseRef{Kind: p.Kind, Name: p.Name, Position: p.Position},
		For:      p.For, Topic: p.Topic, Key: p.Key, Flow: p.Flow, Version: p.Version,
	}
	for _, t := range []struct {
		what, text string
		limit      int
	}{
		{"name", p.Name, MaxPauseName},
		{"position", p.Position, MaxPosition},
		{"topic", p.Topic, maxPauseText},
		{"key", p.Key, maxPauseText},
		{"flow", p.Flow, maxPauseText},
		{"version", p.Version, maxPauseText},
	} {
		if len(t.text) > t.limit || !plain(t.text) {
			return out, fmt.Errorf("its %s has %d bytes: up to %d bytes of UTF-8 without U+0000 are allowed", t.what, len(t.text), t.limit)
		}
	}
	if p.For < 0 || p.For > maxPauseMicros {
		return out, fmt.Errorf("its time of %d µs is not within 0…%d", p.For, int64(maxPauseMicros))
	}
	switch {
	case p.Name == "" || p.Position == "":
		return out, fmt.Errorf("it has no name, or no position")
	case p.Kind == journal.PauseSleep && p.Topic+p.Key+p.Flow+p.Version == "" && p.Input == nil:
	case p.Kind == journal.PauseSignal && p.Topic != "" && p.Flow+p.Version == "" && p.Input == nil:
	case p.Kind == journal.PauseChild && p.Flow != "" && p.Topic == "" && p.For == 0 && p.Input != nil:
	default:
		return out, fmt.Errorf("kind %.20q with these members is %s", p.Kind, noPauseOfItself)
	}
	if p.Input == nil {
		return out, nil
	}
	var err error
	out.Input, err = canonical.Payload(p.Input)
	return out, err
}

func plain(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// Micros is a duration as a pause has it. It rounds up, so that a short time does not become zero.
func Micros(d time.Duration) int64 {
	us := int64(max(d, 0) / time.Microsecond)
	if d > 0 && d%time.Microsecond != 0 {
		us++
	}
	return us
}
