package differential

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// process is the session of one, in both stores.
type process struct{ pg, mem store.Session }

// most is how many processes are alive at a time.
const most = 4

// session is that of a process, mostly of one that is alive; 0: there is none yet.
func (w *twin) session() int64 {
	if p, ok := recent(w, "session", w.sessions); ok {
		return p.pg.ID()
	}
	return 0
}

// process is one call of a process about its session.
func (w *twin) process() {
	p, ok := recent(w, "process", w.sessions)
	switch call := w.upTo("of a session", 9); {
	case !ok || call == 0:
		w.open()
	case call < 6:
		_, _ = both(w, "renew", func(s store.Store) ([]string, error) {
			return renew(w.ctx, w.in(p, s))
		})
	case call == 6:
		_ = w.done("end session", func(s store.Store) error { return w.in(p, s).End(w.ctx) })
	case call == 7:
		_, _ = read(w, "held", func(s store.Store) ([]journal.GUID, error) {
			held, err := w.in(p, s).Held(w.ctx)
			ids := make([]journal.GUID, len(held))
			for i := range held {
				ids[i] = held[i].Request
			}
			slices.SortFunc(ids, func(a, b journal.GUID) int { return bytes.Compare(a[:], b[:]) })
			return ids, err
		})
	default:
		_, _ = read(w, "lost", func(s store.Store) ([]store.LostLease, error) {
			lost, err := w.in(p, s).Lost(w.ctx, w.leases)
			slices.SortFunc(lost, func(a, b store.LostLease) int { return a.Place - b.Place })
			return lost, err
		})
	}
}

// renew renews a session until that has ended all that it can: Postgres goes on with it
// when Renew has returned, and Held waits for that.
func renew(ctx context.Context, s store.Session) (ended []string, err error) {
	for range 2 {
		more, err := s.Renew(ctx, nil)
		if err != nil {
			return nil, err
		}
		ended = append(ended, more...)
		if _, err := s.Held(ctx); err != nil {
			return nil, err
		}
	}
	slices.Sort(ended)
	return ended, nil
}

// in is the session of the process in one of the stores.
func (w *twin) in(p *process, s store.Store) store.Session {
	if s == w.Store {
		return p.pg
	}
	return p.mem
}

func (w *twin) open() {
	name, lease := pick(w, "name of a process", "p", "q"), pick[time.Duration](w, "lease of a session", 5, 60)*second
	p := &process{}
	_, err := both(w, "open session", func(s store.Store) (id int64, err error) {
		x, err := s.OpenSession(w.ctx, store.Process{Name: name, Lease: lease})
		if err != nil {
			return 0, err
		}
		if s == w.Store {
			p.pg = x
		} else {
			p.mem = x
		}
		return x.ID(), nil
	})
	require.NoError(w, err)
	over, done := context.WithCancel(w.ctx)
	done()
	w.Cleanup(func() { _ = p.pg.End(over) }) // it gives its connection up
	if w.sessions = append(w.sessions, p); len(w.sessions) > most {
		_ = w.sessions[0].pg.End(over)
		w.sessions = w.sessions[1:]
	}
	w.mode.Session = p.pg.ID()
}
