package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of the upkeep of sessions.
const (
	freeing    = 1000             // rows that one statement frees
	endTime    = 30 * time.Second // for one look at dead sessions
	heldAtMost = 10_000           // leases that one call of Held lists
)

// session is the session of a process, on a connection of its own (W8). What may take long uses a
// second connection, so that it does not hold up a renewal.
type session struct {
	s       *Store
	id      int64
	next    time.Duration
	engines int
	killers []string
	alive   line

	over   atomic.Bool // the session has ended
	slowly sync.Mutex  // held while slow is used
	slow   line

	mu    sync.Mutex
	ended []string // dead processes that Renew has not reported yet
}

// OpenSession implements store.Sessions.
func (s *Store) OpenSession(ctx context.Context, p store.Process) (store.Session, error) {
	x := &session{s: s, alive: line{s: s}, slow: line{s: s}}
	err := x.alive.call(ctx, "open session", "session_open", func(v row) error {
		x.id, x.killers = v.int(0), v.lines(1)
		return nil
	}, pText(p.Name), pInt(p.Lease.Microseconds()), pBool(p.Engine), pText(p.Build), pTexts(p.Roles), pTexts(p.Topics),
		pInt(int64(p.Lanes)), pTexts(p.Early), pInt(store.EarlyAgain.Microseconds()))
	if err != nil {
		x.alive.drop()
		return nil, err
	}
	return x, nil
}

// Processes implements store.Sessions.
func (s *Store) Processes(ctx context.Context) ([]store.ProcessView, error) {
	return s.processes(ctx, false)
}

// Silent implements store.Sessions.
func (s *Store) Silent(ctx context.Context) ([]store.ProcessView, error) {
	return s.processes(ctx, true)
}

// Clock reads the clock of the database (J5), by which all stored times are.
func (s *Store) Clock(ctx context.Context) (collation.Micros, error) {
	now, _, err := readOne(ctx, s, "clock", func(v row) (collation.Micros, error) { return collation.Micros(v.int(0)), nil })
	return now, err
}

func (s *Store) processes(ctx context.Context, silent bool) ([]store.ProcessView, error) {
	return readAll(ctx, s, "session_list", func(v row) (store.ProcessView, error) {
		return store.ProcessView{
			Process: store.Process{
				Name: v.text(0), Build: v.text(1), Roles: v.lines(2), Topics: v.lines(3), Engine: v.bool(4),
				Lease: time.Duration(v.int(5)) * time.Microsecond, Lanes: int(v.int(8)),
				Early: v.lines(14),
			},
			Since: collation.Micros(v.int(6)), Renewed: collation.Micros(v.int(7)), Doing: store.Doing{
				Ran: v.numbers(9), Busy: store.Busy{
					For: time.Duration(v.int(10)) * time.Microsecond, Job: v.job(11), Message: v.guid(12),
				},
				Troubles: readTroubles(v.lines(13)), Early: readEarly(v.numbers(15)),
			},
		}, nil
	}, pInt(store.MaxPage), pBool(silent))
}

// writeTroubles writes troubles as lines of JSON.
func writeTroubles(all []store.Trouble) []string {
	lines := make([]string, min(len(all), store.MaxTroubles))
	for i := range lines {
		text, _ := json.Marshal(all[i]) // of texts and numbers, which cannot fail
		lines[i] = string(text)
	}
	return lines
}

// readTroubles reads what writeTroubles wrote. What another build wrote otherwise is left out.
func readTroubles(lines []string) (all []store.Trouble) {
	for _, line := range lines {
		var x store.Trouble
		if json.Unmarshal([]byte(line), &x) == nil && x.Text != "" {
			all = append(all, x)
		}
	}
	return all
}

// earlyNumbers is how many numbers the column early_runs has of a topic.
const earlyNumbers = 4

// writeEarly writes early runs as numbers.
func writeEarly(runs []store.EarlyRuns) []int64 {
	all := make([]int64, 0, earlyNumbers*len(runs))
	for _, x := range runs {
		all = append(all, x.Kept, x.Late, x.Dropped, x.Mean.Nanoseconds())
	}
	return all
}

// readEarly reads what writeEarly wrote.
func readEarly(all []int64) (runs []store.EarlyRuns) {
	for ; len(all) >= earlyNumbers; all = all[earlyNumbers:] {
		runs = append(runs, store.EarlyRuns{Kept: all[0], Late: all[1], Dropped: all[2], Mean: time.Duration(all[3])})
	}
	return runs
}

// ID implements store.Session.
func (x *session) ID() int64 { return x.id }

// Next implements store.Session.
func (x *session) Next() time.Duration { return x.next }

// Engines implements store.Session.
func (x *session) Engines() int { return x.engines }

// Killers implements store.Session.
func (x *session) Killers() []string { return x.killers }

// Renew implements store.Session.
func (x *session) Renew(ctx context.Context, d store.Doing) (ended []string, err error) {
	alive, others := false, int64(0)
	err = x.alive.call(ctx, "renew session", "session_renew", func(v row) error {
		alive, others, x.next = true, v.int(0), time.Duration(v.int(1))*time.Microsecond
		x.engines, x.killers = int(v.int(2)), v.lines(3)
		return nil
	}, pInt(x.id), pInts(d.Ran...), pInt(d.Busy.For.Microseconds()), pUUID(d.Busy.Job), pUUID(d.Busy.Message),
		pTexts(writeTroubles(d.Troubles)), pInts(writeEarly(d.Early)...), pInt(store.EarlyAgain.Microseconds()))
	switch {
	case err != nil:
		return nil, err
	case !alive:
		return nil, fmt.Errorf("postgres: renew session %d: %w: it was ended", x.id, store.ErrStale)
	}
	if others > 0 && x.slowly.TryLock() {
		go x.endDead(context.WithoutCancel(ctx))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	ended, x.ended = x.ended, nil
	return ended, nil
}

// endDead ends the sessions of dead processes. The caller has locked slowly.
func (x *session) endDead(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	defer x.slowly.Unlock()
	defer func() {
		if x.over.Load() {
			x.slow.drop()
		}
	}()
	var ended []string
	err := x.slow.call(ctx, "end sessions", "session_end_dead", nil, pInt(x.id))
	if err == nil {
		ended, err = x.free(ctx)
	}
	if err != nil {
		x.s.log.Warn("what a process held that is not heard of could not be freed; it is tried again", "error", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = append(x.ended, ended...)
}

// free frees what dead sessions held, and names the processes of which nothing is left to free.
func (x *session) free(ctx context.Context) (ended []string, err error) {
	dead, forgets := map[int64]string{}, false
	err = x.slow.call(ctx, "end sessions", "session_dead", func(v row) error {
		dead[v.int(0)], forgets = v.text(1), v.bool(2)
		return nil
	}, pInt(store.EarlyAgain.Microseconds()))
	for id, name := range dead {
		due := 0
		err = x.all(ctx, &due, "session_free", pInt(id), pInt(freeing))
		if err == nil {
			err = x.all(ctx, &due, "session_resend", pInt(id), pInt(freeing), pInt(store.Unpublished.Microseconds()))
		}
		if err == nil && due > 0 {
			err = x.slow.call(ctx, "end sessions", "announce", nil)
		}
		if err == nil && forgets {
			err = x.slow.call(ctx, "end sessions", "session_forget", func(row) error {
				ended = append(ended, name)
				return nil
			}, pInt(id), pInt(store.EarlyAgain.Microseconds()))
		}
	}
	return ended, err
}

// all repeats a statement, which changes at most freeing rows, until it changes fewer. It counts
// the rows.
func (x *session) all(ctx context.Context, changed *int, name string, params ...[]byte) error {
	for n := freeing; n == freeing; {
		n = 0
		err := x.slow.call(ctx, "end sessions", name, func(row) error {
			n++
			*changed++
			return nil
		}, params...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Held implements store.Session.
func (x *session) Held(ctx context.Context) (leases []store.Lease, err error) {
	x.slowly.Lock()
	defer x.slowly.Unlock()
	if x.over.Load() {
		return nil, nil
	}
	err = x.slow.call(ctx, "look at leases", "session_held", func(v row) error {
		leases = append(leases, store.Lease{
			Job: v.job(0), Request: v.guid(1), Space: x.s.cfg.Space, Turn: int(v.int(2)), Holder: v.text(3),
			Session: x.id, Fence: v.int(4),
		})
		return nil
	}, pInt(x.id), pInt(heldAtMost))
	return leases, err
}

// Lost implements store.Session.
func (x *session) Lost(ctx context.Context, leases []store.Lease) (lost []store.LostLease, err error) {
	if len(leases) == 0 {
		return nil, nil
	}
	err = x.alive.call(ctx, "look at leases", "session_lost", func(v row) error {
		closed := !v.null(1) && journal.JobState(v.text(1)).Closed()
		lost = append(lost, store.LostLease{Place: int(v.int(0)) - 1, Closed: closed})
		return nil
	}, arrays(leases, func(c *columns, l store.Lease) {
		c.uuid(l.Job)
		c.uuid(l.Request)
		c.int(int64(l.Turn))
		c.text(l.Holder)
	})...)
	return lost, err
}

// End implements store.Session. It does not wait for a running look at dead sessions: the
// sessions of others do that work.
func (x *session) End(ctx context.Context) error {
	defer x.alive.drop()
	x.over.Store(true)
	err := ctx.Err()
	if err == nil {
		err = x.alive.call(ctx, "end session", "session_end", nil, pInt(x.id), pInt(store.Unpublished.Microseconds()))
	}
	if !x.slowly.TryLock() {
		return err
	}
	defer x.slowly.Unlock()
	defer x.slow.drop()
	if err == nil {
		_, err = x.free(ctx)
	}
	return err
}
