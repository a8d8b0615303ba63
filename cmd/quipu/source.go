package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/view"
)

// source is what a command asks: the database, or the HTTP API. A key of a job may also be its id, where
// no job has it as its key.
type source interface {
	Find(ctx context.Context, key string) (quipu.Job, error)
	Job(ctx context.Context, key string, want view.Want) (*view.Job, error)
	// Flow is nil if this build cannot read it.
	Flow(ctx context.Context, name, version string) *flow.Flow
	Definition(ctx context.Context, name, version string) ([]byte, error)
	Flows(ctx context.Context) ([]view.FlowVersion, error)
	Jobs(ctx context.Context, f quipu.JobFilter) (quipu.JobPage, error)
	// Annotate gives jobs of a list their notes. The API has done so.
	Annotate(ctx context.Context, jobs []view.Summary) error
	DeadLetters(ctx context.Context, f quipu.DeadLetterFilter) ([]view.DeadLetter, error)
	Space(ctx context.Context) (*view.Space, error)
	Export(ctx context.Context, key string, w io.Writer) error
	Wait(ctx context.Context, job quipu.Job, untilParked bool) (json.RawMessage, error)

	Start(ctx context.Context, r quipu.StartRequest) (quipu.Job, error)
	Signal(ctx context.Context, topic, key string, payload []byte, f *signalFlags) (api.Signalled, error)
	// Interrupt and Resume are of the job that has the key now.
	Interrupt(ctx context.Context, key string, f *interruptFlags) (api.Interrupted, error)
	Resume(ctx context.Context, key, from string, by decision) (api.Resumed, error)
	Fork(ctx context.Context, of journal.JobID, at int64, as string, by decision) (api.Forked, error)
	Decide(ctx context.Context, d quipu.Decision) error
	Deploy(ctx context.Context, f *flow.Flow, activate bool) (*view.Deployed, error)
	Activate(ctx context.Context, name, version string) error
}

// ask runs f with what the flags say: a connected runtime, or the API.
func (a *app) ask(cmd *cobra.Command, what need, f func(ctx context.Context, from source) error) error {
	if err := a.configure(cmd); err != nil {
		return err
	}
	if a.api == "" {
		return a.connect(cmd, what, func(ctx context.Context, rt *quipu.Runtime) error { return f(ctx, database{rt}) })
	}
	client, err := api.NewClient(a.api, a.streams.Getenv(tokenVariable))
	if err != nil {
		return cli.Exit(cli.CodeUsage, fmt.Errorf("--api: %w", err))
	}
	if who := cmd.Flags().Lookup("who"); who != nil && who.Changed {
		return cli.Exitf(cli.CodeUsage, "--who: by --api it is the name of the token")
	}
	err = f(cmd.Context(), remote{client})
	if err != nil && cli.Code(err) == cli.CodeFailed {
		err = cli.Exit(codeOf(err), err)
	}
	return err
}

// database is the source that has a password.
type database struct{ *quipu.Runtime }

func (d database) reader() *inspect.Reader { return below.Reader(d.Runtime) }

func (d database) Find(ctx context.Context, key string) (quipu.Job, error) {
	id, err := d.reader().Find(ctx, key)
	return quipu.Job{ID: id, Key: key}, err
}

// Job reads a job, with times in the zone of this machine.
func (d database) Job(ctx context.Context, key string, want view.Want) (*view.Job, error) {
	id, err := d.reader().Find(ctx, key)
	if err != nil {
		return nil, err
	}
	return d.reader().Job(ctx, id, inspect.Want{Want: want, AnySize: true, Zone: time.Local})
}

func (d database) Flow(ctx context.Context, name, version string) *flow.Flow {
	return d.reader().Definition(ctx, name, version)
}

func (d database) Annotate(ctx context.Context, jobs []view.Summary) error {
	return d.reader().Annotate(ctx, jobs)
}

func (d database) DeadLetters(ctx context.Context, f quipu.DeadLetterFilter) ([]view.DeadLetter, error) {
	return d.Operator().DeadLetters(ctx, f)
}

func (d database) Export(ctx context.Context, key string, w io.Writer) error {
	id, err := d.reader().Find(ctx, key)
	if err != nil {
		return err
	}
	out := export.NewWriter(w)
	if err := d.reader().Export(ctx, id, out); err != nil {
		return fmt.Errorf("export job %q: %w", key, err)
	}
	return out.Flush()
}

func (d database) Wait(ctx context.Context, job quipu.Job, untilParked bool) (json.RawMessage, error) {
	return d.Runtime.Wait(ctx, job, quipu.UntilParked(untilParked))
}

func (d database) Start(ctx context.Context, r quipu.StartRequest) (quipu.Job, error) {
	all, err := d.StartMany(ctx, []quipu.StartRequest{r})
	if err != nil {
		return quipu.Job{}, err
	}
	return all[0].Job, all[0].Err
}

func (d database) Signal(
	ctx context.Context, topic, key string, payload []byte, f *signalFlags,
) (out api.Signalled, err error) {
	send, options := d.Runtime.Signal, []quipu.SignalOption{quipu.Code(f.code), quipu.Who(f.who)}
	if f.all {
		send = d.SignalAll
	} else {
		options = append(options, quipu.Keep(f.keep))
	}
	if f.id != "" {
		options = append(options, quipu.IdempotencyKey(f.id))
	}
	done, err := send(ctx, topic, key, json.RawMessage(payload), options...)
	return api.Signalled{State: string(done.State), Duplicate: done.Duplicate, Reached: done.Reached}, err
}

// Interrupt reads nothing of the job: a client's login may not.
func (d database) Interrupt(ctx context.Context, key string, f *interruptFlags) (api.Interrupted, error) {
	options := []quipu.InterruptOption{
		quipu.Code(f.code), quipu.Reason(f.reason), quipu.Descend(f.descend), quipu.Throw(!f.noThrow), quipu.Who(f.who),
	}
	if f.id != "" {
		options = append(options, quipu.IdempotencyKey(f.id))
	}
	done, err := d.Runtime.Interrupt(ctx, quipu.Job{Key: key}, options...)
	return api.Interrupted{Key: key, Job: done.Job.ID.String(), Duplicate: done.Duplicate, Closed: done.Closed}, err
}

func (d database) Resume(ctx context.Context, key, from string, by decision) (out api.Resumed, err error) {
	job, err := d.Runtime.Resume(ctx, quipu.Job{Key: key}, quipu.From(from), quipu.Who(by.who), quipu.Reason(by.reason))
	if err != nil {
		return out, err
	}
	v, err := d.Runtime.Job(ctx, job)
	if err != nil {
		return out, err
	}
	return api.Resumed{Key: key, Job: job.ID.String(), Generation: v.Generation}, nil
}

func (d database) Fork(
	ctx context.Context, of journal.JobID, at int64, as string, by decision,
) (api.Forked, error) {
	job, err := d.Runtime.Fork(ctx, quipu.Job{ID: of}, at, as, quipu.Who(by.who), quipu.Reason(by.reason))
	return api.Forked{Key: job.Key, Job: job.ID.String()}, err
}

func (d database) Decide(ctx context.Context, x quipu.Decision) error {
	return d.Operator().Decide(ctx, x)
}

func (d database) Definition(ctx context.Context, name, version string) ([]byte, error) {
	return below.Of(d.Runtime).Flow(ctx, name, version)
}

func (d database) Deploy(ctx context.Context, f *flow.Flow, activate bool) (*view.Deployed, error) {
	return d.Operator().Deploy(ctx, f, activate, "")
}

func (d database) Activate(ctx context.Context, name, version string) error {
	return d.Operator().Activate(ctx, name, version, "")
}
