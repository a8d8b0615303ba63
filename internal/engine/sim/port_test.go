package sim

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// port is the store of one process. Every call goes through the gate; no process calls a method
// that is missing here.
type port struct {
	*memstore.Store
	p *process
	// label distinguishes the calls of one client from those of others.
	label string
}

var _ store.Store = (*port)(nil)

// short returns a part of an id that is enough to recognize it.
func short[T ~[16]byte](id T) string {
	b, out := [16]byte(id), [10]byte{}
	hex.Encode(out[:], b[:5])
	return string(out[:])
}

// Committer opens its connection at the first call, whose jobs distinguish it from others of its
// process.
func (s *port) Committer(_ context.Context, patient bool) (store.Committer, error) {
	return &committer{port: s, name: s.label + "new", patient: patient}, nil
}

func (s *port) Due(ctx context.Context, limit int) (rows []store.DueRow, t store.Timing, err error) {
	err = action(ctx, s.p, kindRead, "due", func() error {
		rows, t, err = s.Store.Due(ctx, limit)
		return err
	})
	return rows, t, err
}

func (s *port) Claim(ctx context.Context, claims []store.Claim) ([]store.Outgoing, error) {
	var id strings.Builder
	id.WriteString("claim")
	for _, c := range claims {
		id.WriteString(" " + short(c.Row.GUID) + ":" + strconv.Itoa(c.Row.Publication))
		if c.Send {
			id.WriteString("!")
		}
		if c.Refused {
			id.WriteString("-")
		}
	}
	return through(ctx, s.p, kindWrite, id.String(), func() ([]store.Outgoing, error) {
		return s.Store.Claim(ctx, claims)
	})
}

func (s *port) Late(ctx context.Context, kind journal.MessageKind, limit int) ([]collation.RowKey, error) {
	return through(ctx, s.p, kindRead, "late", func() ([]collation.RowKey, error) { return s.Store.Late(ctx, kind, limit) })
}

func (s *port) Publications(ctx context.Context, rows []collation.RowKey) ([]int, error) {
	return through(ctx, s.p, kindRead, "publications", func() ([]int, error) { return s.Store.Publications(ctx, rows) })
}

func (s *port) Flow(ctx context.Context, name, version string) ([]byte, error) {
	return through(ctx, s.p, kindRead, "flow "+name, func() ([]byte, error) { return s.Store.Flow(ctx, name, version) })
}

func (s *port) ActiveFlow(ctx context.Context, name string) (ref journal.FlowRef, body []byte, err error) {
	err = action(ctx, s.p, kindRead, "active flow "+name, func() error {
		ref, body, err = s.Store.ActiveFlow(ctx, name)
		return err
	})
	return ref, body, err
}

func (s *port) Deploy(ctx context.Context, d store.Deployment) (store.Deployed, error) {
	return through(ctx, s.p, kindWrite, "deploy "+d.Ref.Name, func() (store.Deployed, error) {
		return s.Store.Deploy(ctx, d)
	})
}

func (s *port) Epoch(ctx context.Context) (int64, error) {
	return through(ctx, s.p, kindRead, s.label+"epoch", func() (int64, error) { return s.Store.Epoch(ctx) })
}

func (s *port) Extend(ctx context.Context) error {
	return action(ctx, s.p, kindWrite, "extend", func() error { return s.Store.Extend(ctx) })
}

func (s *port) Prune(ctx context.Context, limit int) (int, error) {
	return through(ctx, s.p, kindWrite, "prune", func() (int, error) { return s.Store.Prune(ctx, limit) })
}

// committer is one connection of a process.
type committer struct {
	port    *port
	tx      store.Committer // nil before the first Load
	name    string
	patient bool
	busy    atomic.Bool // the store carries out a call
}

// inside carries out a call that the process may not survive.
func (c *committer) inside(do func() error) error {
	c.busy.Store(true)
	err := do()
	c.busy.Store(false)
	if c.port.p.gone() && c.tx != nil {
		c.tx.Close()
	}
	return err
}

// cut breaks the connection of a process that died, which rolls back.
func (c *committer) cut() {
	if c.tx != nil && !c.busy.Load() {
		c.tx.Close()
	}
}

func (c *committer) Load(ctx context.Context, wants []store.Want, wait bool) (*store.Loaded, error) {
	var id strings.Builder
	id.WriteString("load " + c.name)
	for i := range wants {
		w := &wants[i]
		id.WriteString(" " + short(w.Job) + "/" + short(w.Receipt) + "/" + short(w.Row) + w.Key)
		if !w.Chain.GUID.IsZero() {
			id.WriteString(" of " + short(w.Chain.GUID))
		}
		if !w.Box.IsZero() {
			id.WriteString(" box " + short(w.Box) + "/" + short(w.Signal) + "/" + short(w.Known.GUID))
		}
		for _, key := range w.Effects {
			id.WriteString(" " + hex.EncodeToString(key[:5]))
		}
	}
	return through(ctx, c.port.p, kindRead, id.String(), func() (l *store.Loaded, err error) {
		err = c.inside(func() error {
			if err := c.dial(ctx); err != nil {
				return err
			}
			l, err = c.tx.Load(ctx, wants, wait)
			return err
		})
		return l, err
	})
}

// dial opens the connection, once.
func (c *committer) dial(ctx context.Context) (err error) {
	if c.tx != nil {
		return nil
	}
	if c.tx, err = c.port.Store.Committer(ctx, c.patient); err != nil {
		return err
	}
	session, _ := c.tx.Session()
	c.name = fmt.Sprint(session[15])
	c.port.p.mu.Lock()
	c.port.p.txs = append(c.port.p.txs, c)
	c.port.p.mu.Unlock()
	return nil
}

func (c *committer) More(ctx context.Context, needs map[journal.JobID]*collation.Need) error {
	jobs := make([]string, 0, len(needs))
	for id := range needs {
		jobs = append(jobs, short(id))
	}
	slices.Sort(jobs)
	return action(ctx, c.port.p, kindRead, "more "+c.name+" "+strings.Join(jobs, " "), func() error {
		return c.inside(func() error { return c.tx.More(ctx, needs) })
	})
}

func (c *committer) Commit(ctx context.Context, plans []store.Chained) error {
	var id strings.Builder
	id.WriteString("commit " + c.name)
	for i := range plans {
		id.WriteString(" " + short(plans[i].Plan.Job) + gist(plans[i].Plan))
	}
	err := action(ctx, c.port.p, kindCommit, id.String(), func() error {
		return c.inside(func() error {
			if err := c.dial(ctx); err != nil {
				return err
			}
			err := c.tx.Commit(ctx, plans)
			if err == nil {
				c.port.p.world.committed(plans)
				for i := range plans {
					c.port.p.world.keeps(plans[i].Plan)
				}
				c.port.p.world.lettered(plans)
			}
			return err
		})
	})
	return err
}

// gist says what a plan does, without the bytes of its entry, which may have a stack.
func gist(p *collation.Plan) string {
	e := p.Entry
	var b strings.Builder
	if e != nil {
		fmt.Fprintf(&b, ":%d %s %s", e.Seq, e.Kind, short(e.GUID))
		for _, m := range e.Marks {
			b.WriteString(" " + string(m))
		}
	}
	for i := range p.Insert {
		b.WriteString(" +" + short(p.Insert[i].GUID))
	}
	for _, g := range p.Delete {
		b.WriteString(" -" + short(g))
	}
	for _, k := range p.Discard {
		b.WriteString(" -" + short(k.GUID))
	}
	for i := range p.Dead {
		b.WriteString(" dead " + p.Dead[i].Reason)
	}
	return b.String()
}

// Rollback needs no gate: its effect happens anyway when the process dies.
func (c *committer) Rollback(ctx context.Context) error {
	if c.tx == nil || c.port.p.gone() {
		return nil
	}
	return c.inside(func() error { return c.tx.Rollback(ctx) })
}

func (c *committer) Released() []store.Outgoing { return c.tx.Released() }

func (c *committer) Session() (journal.GUID, int64) {
	if c.tx == nil {
		return journal.GUID{}, 0
	}
	return c.tx.Session()
}

func (c *committer) Close() {
	if c.tx != nil && !c.port.p.gone() {
		c.tx.Close()
	}
}
