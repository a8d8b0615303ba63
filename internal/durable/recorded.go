package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
)

// Recorded returns the result that fn had when the durable function that ctx belongs to
// first made this call. It is a Pure effect with its position as the key (E15). Outside a
// job it calls fn (E14).
func Recorded[T any](ctx context.Context, name string, fn func() (T, error)) (out T, err error) {
	s := effect.From(ctx)
	if s == nil {
		return fn()
	}
	c, err := effect.OwnCall("", name, "", effects.Pure)
	if err != nil {
		return out, err
	}
	err = s.Perform(ctx, c, func(context.Context, any) (any, error) { return fn() }, &out)
	return out, err
}

// Version records and returns the version of a change that the run takes, 0 to latest. A
// function whose record goes on past this place takes 0, the code from before the change;
// any other takes latest. Each branch records a change once, unless a branch around it
// already has its version. The call has no position (E15). Outside a job it is latest
// (E14).
func Version(ctx context.Context, change string, latest int) (int, error) {
	c := &call{what: effectLabel("version:" + change), unplaced: true}
	var err error
	switch c.f, err = functionOf(ctx, c); {
	case err != nil:
		return 0, err
	case c.f == nil:
		return latest, nil
	case latest < 1:
		return 0, fmt.Errorf("%s: %w: version %d: 1 and more are allowed, 0 is the code without the change", c, effects.ErrUsage, latest)
	}
	defer c.End()
	if err := c.begin(ctx); err != nil {
		return 0, err
	}
	b := c.branch
	if c.effect, err = effect.OwnCall("version:", change, "version "+b.path, effects.Pure); err != nil {
		return 0, err
	}
	c.effect.At(c, "")
	v, known := b.w.told(b, change)
	if !known {
		if v, err = c.decideVersion(ctx, latest); err != nil {
			return 0, err
		}
		b.w.tell(b, change, v)
	}
	if v > latest {
		return 0, c.judge(&effects.NondeterminismError{
			Position: b.place(b.calls + 1), Recorded: fmt.Sprintf("version %d of the change %q", v, change),
			Asked: fmt.Sprintf("version %d at most", latest),
		})
	}
	return v, nil
}

// decideVersion reads the recorded version, or decides on one.
func (c *call) decideVersion(ctx context.Context, latest int) (int, error) {
	w := c.branch.w
	w.mu.Lock()
	_, recorded := w.rows.ByKey[c.key(0)]
	past := !recorded && w.history.beyond(c.branch)
	w.mu.Unlock()
	if past {
		return 0, nil
	}
	raw, err := c.carry(ctx, latest)
	return c.number(raw, err)
}

// carry records a number as the result of the call's own effect, or returns the recorded
// one.
func (c *call) carry(ctx context.Context, n int) ([]byte, error) {
	return c.f.session.Carry(ctx, c.effect, func() ([]byte, error) { return strconv.AppendInt(nil, int64(n), 10), nil })
}

// number decodes a result of carry.
func (c *call) number(raw []byte, err error) (n int, _ error) {
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return 0, fmt.Errorf("%s: its recorded result is no number: %w", c, err)
	}
	return n, nil
}

// told is the version that this run gave to the branch or to one around it.
func (w *walk) told(b *branch, change string) (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; b != nil; b = b.parent() {
		if v, ok := w.version[versionID{b, change}]; ok {
			return v, true
		}
	}
	return 0, false
}

func (w *walk) tell(b *branch, change string, v int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version[versionID{b, change}] = v
}

type versionID struct {
	branch *branch
	change string
}
