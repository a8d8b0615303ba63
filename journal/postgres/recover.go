package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Recovery is what Recover is asked for.
type Recovery struct {
	// Left is the newest mark that was left outside of the database; zero: none is known.
	Left store.Mark
	// LostWrites says that commits are missing that were made: from now on every Guarded effect
	// of an open job is first asked about, as if the run that called it had died (E4).
	LostWrites bool
	// LostStarts is how long from now jobs that begin are asked about, too: who had started a job
	// that is missing starts it again. Only with LostWrites.
	LostStarts time.Duration
	// DryRun changes nothing.
	DryRun bool
}

// Recovered is what Recover found and did.
type Recovered struct {
	Why      error // why the database was another one; nil: it was not
	Epoch    int64 // in which the space goes on; 0: nothing was changed
	Before   int64 // the epoch that Recover found
	Requests []Doubtful
	More     int // further ones, beyond store.MaxPage
}

// Doubtful is an open request: its handler may have gone on, without a record.
type Doubtful struct {
	Key, Flow, Activity, DAD, Topic string
	Request                         journal.GUID
	// Effect and Name are a Guarded effect of it that is known to have begun; zero if there is
	// none.
	Effect journal.Digest
	Name   string
}

// recoverWait bounds the wait for the processes that still work on the database.
const recoverWait = 30 * time.Second

// Recover accepts the database for the space, in a higher epoch (S13). Processes that work on it
// stop before, and go on after that by themselves. The store needs Config.AnyDatabase and the
// rights of the owner. A database that has certainly lost writes is store.ErrRejected without
// LostWrites. If nothing is wrong and LostWrites is not set, nothing is changed. It can be
// repeated.
func (s *Store) Recover(ctx context.Context, want Recovery) (got Recovered, err error) {
	err = s.with(ctx, func(c *conn) error {
		p, err := s.inspect(ctx, c.pg)
		if err != nil {
			return err
		}
		if want.Left.Space != p.mark.Space {
			want.Left = p.mark
		}
		got.Why, got.Before = p.judge(want.Left), p.mark.Epoch
		if errors.Is(got.Why, errStandby) {
			return got.Why
		}
		if lost := p.older([]store.Mark{want.Left}); lost != nil && !want.LostWrites {
			return store.Rejected(strings.TrimSuffix(lost.Error(), advice) + ": commits are certainly lost, say --lost-writes")
		}
		if got.Why == nil && !want.LostWrites {
			return nil
		}
		if !want.DryRun {
			if err := s.quiet(ctx, c, p); err != nil {
				return err
			}
		}
		if want.LostWrites {
			if err := got.list(ctx, c); err != nil {
				return err
			}
		}
		if want.DryRun {
			return nil
		}
		var tried *journal.Record // it is not repeated
		return s.actOn(ctx, c, &tried, func(c *conn) ([]journal.SpaceEntry, error) { return got.accept(ctx, c, &want) })
	})
	return got, settle("recover", err)
}

// quiet halts the space and waits until no process works on it.
func (s *Store) quiet(ctx context.Context, c *conn, p *site) error {
	if err := c.query(ctx, "place_halt", nil, pInt(p.mark.Epoch), pText("`quipu recover` runs, or was cut off")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recoverWait)
	defer cancel()
	for {
		name := ""
		err := c.query(ctx, "session_list", func(v row) error { name = v.text(0); return nil }, pInt(1), pBool(false))
		if err != nil || name == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return store.Rejected(fmt.Sprintf("process %s still works on this database %s after it was halted: stop it, and repeat", name, recoverWait))
		case <-time.After(recoverLook):
		}
	}
}

// recoverLook is the pause between two looks at the processes.
const recoverLook = 100 * time.Millisecond

// list reads what may have gone on without a record.
func (r *Recovered) list(ctx context.Context, c *conn) error {
	r.Requests = nil
	total := 0
	err := c.query(ctx, "place_requests", func(v row) error {
		d := Doubtful{
			Key: v.text(0), Flow: v.text(1), Activity: v.text(2), DAD: v.text(3), Topic: v.text(4), Request: v.guid(5),
			Name: v.text(7),
		}
		if d.Name != "" {
			d.Effect = v.digest(6)
		}
		r.Requests, total = append(r.Requests, d), int(v.int(8))
		return nil
	}, pInt(store.MaxPage))
	r.More = total - len(r.Requests)
	return err
}

// accept moves the space to this database, and returns the entry that says so.
func (r *Recovered) accept(ctx context.Context, c *conn, want *Recovery) ([]journal.SpaceEntry, error) {
	var doubt []byte
	facts := map[string]string{"why": "", "before": strconv.FormatInt(r.Before, 10), "lost": "none", "starts": ""}
	if r.Why != nil {
		facts["why"] = strings.TrimSuffix(r.Why.Error(), advice)
	}
	if want.LostWrites {
		doubt = pInt(want.LostStarts.Microseconds())
		facts["lost"], facts["starts"] = "writes", want.LostStarts.String()
	}
	err := c.query(ctx, "place_accept", func(v row) error {
		r.Epoch = v.int(0)
		return nil
	}, pInt(r.Before), pInt(want.Left.Epoch), doubt)
	if err == nil && r.Epoch == 0 {
		err = fmt.Errorf("%w: the space was recovered meanwhile: look again", store.ErrLost)
	}
	facts["epoch"] = strconv.FormatInt(r.Epoch, 10)
	return one(true, journal.SpaceRecovered, facts), err
}

// OnPromotion sets whether processes accept a promotion by themselves (S13): one of the same
// cluster, which has every mark that they and NATS have seen. That is safe only where every
// standby that may be promoted is synchronous.
func (s *Store) OnPromotion(ctx context.Context, goOn bool) error {
	processes := "stop"
	if goOn {
		processes = "continue"
	}
	return s.setting(ctx, "place_allow", pBool(goOn), journal.SpacePromotion, "processes", processes)
}
