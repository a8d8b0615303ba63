package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres"
)

// defaultLostStarts is long enough for clients and schedules to start again what is missing.
const defaultLostStarts = 10 * time.Minute

// recovery is what recover was asked for.
type recovery struct {
	postgres.Recovery
	promotion string // "", stop or continue
}

func (a *app) recoverCommand() *cobra.Command {
	var r recovery
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Let a space go on in another database",
		Long: `Accept the database that the space is in now, after a promotion, a restore or a move to
another cluster. Until then every process refuses to work there. Afterwards the processes
go on by themselves, in a new epoch. Make sure first that nothing can write to the old
database any more. Give --nats: NATS knows how new the old database was.

If the database may lack commits that were made (an asynchronous standby, a backup), say
--lost-writes. From then on, the Guarded effects of the jobs that are open now are not
called before somebody has said that they were not made: their verifier, or a person, by
a dead letter. This also holds for jobs that begin within --lost-starts, because what had
started them and is missing now starts them again. The command lists the open requests,
which may have gone on without a record, and says how many more there are than 1000.
Idempotent effects are called again under their keys. Nothing brings back what was lost:
jobs, signals and results of which the database knows nothing.

Without --lost-writes, only the epoch is raised. That is right for a standby that had
every commit. A database that NATS shows to be older is refused.

--on-promotion continue lets processes accept the promotion of a standby of the same
cluster by themselves, if it has everything that they and NATS have seen. Use it only
where every standby that may be promoted is synchronous. It is a setting of the space; a
new space has stop. With it alone nothing else is changed.

It needs the rights of the owner of the tables.`,
		Example: "  quipu recover --dry-run --lost-writes\n  quipu recover --lost-writes -o json\n  quipu recover --on-promotion continue",
		Args:    cli.Args(0, 0),
	}
	f := cmd.Flags()
	f.BoolVar(&r.LostWrites, "lost-writes", false, "commits may be missing: ask before a Guarded effect is called")
	f.DurationVar(&r.LostStarts, "lost-starts", defaultLostStarts, "`TIME` from now in which jobs that begin may be missing ones; with --lost-writes")
	f.BoolVar(&r.DryRun, "dry-run", false, "change nothing; say what would be done")
	f.StringVar(&r.promotion, "on-promotion", "", "`WHAT` processes do from now on when a standby was promoted: stop or continue")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		if r.LostStarts < 0 {
			return cli.Exitf(cli.CodeUsage, "--lost-starts %s: use 0s or more", r.LostStarts)
		}
		if !slices.Contains([]string{"", "stop", "continue"}, r.promotion) {
			return cli.Exitf(cli.CodeUsage, "--on-promotion %.40q: use stop or continue", r.promotion)
		}
		return a.with(cmd, recovers, func(ctx context.Context, rt *quipu.Runtime) error {
			return a.recover(ctx, rt, &r)
		})
	})
	return cmd
}

func (a *app) recover(ctx context.Context, rt *quipu.Runtime, r *recovery) error {
	st := below.Of(rt)
	left, foreign, err := below.Witness(ctx, rt)
	switch {
	case err != nil:
		return err
	case foreign != nil && left == (store.Mark{}):
		return unbelieved(foreign)
	case foreign != nil:
		fmt.Fprintf(a.streams.Err, "%s. The newest mark that holds counts. If the database is from before a rotation of the keys, "+
			"say --lost-writes: docs/recover.md\n", foreign)
	case a.nats == "":
		fmt.Fprintln(a.streams.Err, "without --nats nobody says how new the database was")
	}
	r.Left = left
	if r.promotion != "" && !r.DryRun {
		if err := st.OnPromotion(ctx, r.promotion == "continue"); err != nil {
			return err
		}
	}
	got, err := st.Recover(ctx, r.Recovery)
	if err != nil {
		return err
	}
	if a.json() {
		return a.object(recoveredOf(r, &got))
	}
	return a.recovered(r, &got)
}

// unbelieved says what to do about a mark in NATS that no key of the space has signed.
func unbelieved(err error) error {
	return fmt.Errorf("%w. If the keys were rotated a moment ago, an engine that works signs a new mark within some seconds: "+
		"repeat this. If no engine works, because the database is another one, go on without NATS (--nats '') and with "+
		"--lost-writes, unless you know that no commit is missing. Otherwise somebody else writes there: docs/recover.md", err)
}

// recovered is what recover prints in JSON.
type recovered struct {
	Why         string     `json:"why,omitempty"`
	Before      int64      `json:"before"`
	Epoch       int64      `json:"epoch,omitempty"`
	LostWrites  bool       `json:"lostWrites"`
	LostStarts  string     `json:"lostStarts,omitempty"`
	DryRun      bool       `json:"dryRun"`
	OnPromotion string     `json:"onPromotion,omitempty"`
	Requests    []doubtful `json:"requests"`
	More        int        `json:"more"`
}

// doubtful is an open request.
type doubtful struct {
	Key      string `json:"key"`
	Flow     string `json:"flow"`
	Activity string `json:"activity"`
	DAD      string `json:"dad"`
	Topic    string `json:"topic"`
	Request  string `json:"request"`
	Effect   string `json:"effect,omitempty"` // key of a Guarded effect that is known to have begun
	Name     string `json:"name,omitempty"`
}

func recoveredOf(r *recovery, got *postgres.Recovered) recovered {
	out := recovered{
		Before: got.Before, Epoch: got.Epoch, LostWrites: r.LostWrites, DryRun: r.DryRun, OnPromotion: r.promotion,
		Requests: make([]doubtful, len(got.Requests)), More: got.More,
	}
	if got.Why != nil {
		out.Why = got.Why.Error()
	}
	if r.LostWrites {
		out.LostStarts = r.LostStarts.String()
	}
	for i, d := range got.Requests {
		out.Requests[i] = doubtful{d.Key, d.Flow, d.Activity, d.DAD, d.Topic, d.Request.String(), "", d.Name}
		if d.Effect != (journal.Digest{}) {
			out.Requests[i].Effect = d.Effect.String()
		}
	}
	return out
}

func (a *app) recovered(r *recovery, got *postgres.Recovered) error {
	w := a.streams.Out
	if r.promotion != "" {
		fmt.Fprintf(w, "on a promotion processes %s\n", r.promotion)
	}
	switch {
	case got.Why == nil && !r.LostWrites:
		_, err := fmt.Fprintf(w, "the database is the one that the space was accepted in: nothing is to be recovered (epoch %d)\n", got.Before)
		return err
	case got.Why != nil:
		fmt.Fprintln(w, plain(got.Why.Error()))
	}
	if r.DryRun {
		fmt.Fprintf(w, "nothing was changed; without --dry-run epoch %d ends, and the processes go on in the next one\n", got.Before)
	} else {
		fmt.Fprintf(w, "epoch %d has ended, the processes go on in epoch %d\n", got.Before, got.Epoch)
	}
	if !r.LostWrites {
		return nil
	}
	fmt.Fprintf(w, "Guarded effects of open jobs, and of those that begin within %s, are asked about before they are called: by their verifiers, or by dead letters (quipu dead ls)\n", r.LostStarts)
	fmt.Fprintf(w, "%d open requests may have gone on without a record\n", len(got.Requests)+got.More)
	if len(got.Requests) == 0 {
		return nil
	}
	t := newTable(w, "JOB", "FLOW", "ACTIVITY", "ADDRESS", "TOPIC", "BEGUN")
	for _, d := range got.Requests {
		t.row(d.Key, d.Flow, d.Activity, d.DAD, d.Topic, d.Name)
	}
	return t.flush()
}
