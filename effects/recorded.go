package effects

import (
	"context"
	"encoding/json"
	"fmt"
)

// Recorded returns what fn returned when the durable function that ctx belongs to
// first came by: a Pure effect that is known by its position (E15). Outside a job
// fn is called (E14).
func Recorded[T any](ctx context.Context, name string, fn func() (T, error)) (T, error) {
	s := From(ctx)
	if s == nil {
		return fn()
	}
	c := newCall(name, []Option{Pure})
	c.placed = true
	if !s.cfg.Durable && c.err == nil {
		c.err = notDurable(c)
	}
	raw, err := s.do(ctx, c, func(context.Context, any) ([]byte, error) {
		v, err := fn()
		if err != nil {
			return nil, err
		}
		return encode(v)
	})
	return decode[T](s, c, raw, err)
}

// Version returns which version of a change the run of the durable function is to
// take, 0 to latest, and records it. A function that is past the place where it
// asks takes 0, the code from before the change; one that is not, latest. A branch
// asks once for a change, and takes what the branch around it was told before. It
// has no position (E15).
func (s *Session) Version(ctx context.Context, change string, latest int) (int, error) {
	c := newCall(change, []Option{Pure})
	c.name, c.unplaced = "version:"+change, true
	if latest < 1 {
		c.fail("version %d: 1 and more are allowed, 0 is the code without the change", latest)
	}
	if c.err != nil {
		return 0, c.err
	}
	defer c.done()
	if err := s.step(ctx, c); err != nil {
		return 0, err
	}
	if c.branch == nil {
		return 0, notDurable(c)
	}
	w := c.branch.w
	c.own = "version " + c.branch.path
	v, known := w.told(c.branch, change)
	if !known {
		var err error
		if v, err = s.decideVersion(ctx, c, latest); err != nil {
			return 0, err
		}
		w.tell(c.branch, change, v)
	}
	if v > latest {
		return 0, s.judge(c, &NondeterminismError{
			Position: c.branch.place(c.branch.calls + 1), Recorded: fmt.Sprintf("version %d of the change %q", v, change),
			Asked: fmt.Sprintf("version %d at most", latest),
		})
	}
	return v, nil
}

// decideVersion reads the recorded version, or takes one.
func (s *Session) decideVersion(ctx context.Context, c *call, latest int) (v int, err error) {
	w := c.branch.w
	w.mu.Lock()
	_, recorded := w.rows.byKey[s.cfg.Identity.key(c, 0)]
	past := !recorded && w.history.beyond(c.branch)
	w.mu.Unlock()
	if past {
		return 0, nil
	}
	raw, err := s.carry(ctx, c, func(context.Context, any) ([]byte, error) { return encode(latest) })
	return decodeInt(c, raw, err)
}

func decodeInt(c *call, raw []byte, err error) (v int, _ error) {
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return 0, fmt.Errorf("%s: its recorded result is no number: %w", c, err)
	}
	return v, nil
}

// told is the version that the branch, or one around it, was told in this run.
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
