package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

func (a *app) waitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait KEY... | wait -",
		Short: "Wait for the end of jobs",
		Long: `Wait until all jobs have ended, completion tasks included. Print each job when it ends:
its state, and its output or its error. With NATS the engines announce the end at once;
without it, the command looks once a second. Say once of a job that it waits for a person.
At the timeout, say of each job that is left what it waits for, as why does.`,
		Example: "  quipu wait order-42 --timeout 1m\n  quipu ls --state open --keys --limit 0 | quipu wait -",
		Args:    cli.Args(1, -1),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "end after this `TIME` with code 6; default: never")
	return a.ofKeys(cmd, func(cmd *cobra.Command, keys []string) error {
		if timeout < 0 {
			return cli.Exitf(cli.CodeUsage, "--timeout %s: use a positive time such as 30s", timeout)
		}
		return a.ask(cmd, watches, func(ctx context.Context, from source) error {
			ctx, cancel := within(ctx, timeout)
			defer cancel()
			w := &waiter{app: a, from: from, open: map[journal.JobID]string{}}
			return w.wait(ctx, keys)
		})
	})
}

var errTimeout = errors.New("the timeout has passed")

// within ends the context after --timeout, with errTimeout; 0 is never.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errTimeout)
}

// waiter waits for many jobs.
type waiter struct {
	*app
	from source
	open map[journal.JobID]string // keys of the jobs that have not ended
	all  int
	code worst
}

// waited is how a job ended, or why the wait failed.
type waited struct {
	job    quipu.Job
	output json.RawMessage
	err    error
}

func (w *waiter) wait(ctx context.Context, keys []string) error {
	if err := w.find(ctx, keys); err != nil {
		if errors.Is(context.Cause(ctx), errTimeout) {
			err = fmt.Errorf("the database did not answer within --timeout: %w", err)
		}
		return err
	}
	waiting, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	ends := make(chan waited, len(w.open))
	for id, key := range w.open {
		all.Go(func() {
			job := quipu.Job{ID: id, Key: key}
			output, err := w.patiently(waiting, "quipu wait", func(parked bool) (json.RawMessage, error) {
				return w.from.Wait(waiting, job, parked)
			})
			ends <- waited{job, output, err}
		})
	}
	for len(w.open) > 0 {
		w.progress(false)
		select {
		case <-ctx.Done():
			return w.cut(ctx, ctx.Err())
		case e := <-ends:
			if err := w.end(e); err != nil {
				return w.cut(ctx, err)
			}
			delete(w.open, e.job.ID)
		}
	}
	w.progress(true)
	return w.code.err()
}

// find looks the keys up; unknown ones are reported and do not stop the others.
func (w *waiter) find(ctx context.Context, keys []string) error {
	for _, key := range keys {
		job, err := w.from.Find(ctx, key)
		switch {
		case errors.Is(err, quipu.ErrNotFound):
			fmt.Fprintf(w.streams.Err, "quipu wait: %s\n", cli.Harmless(err))
			w.code.add(codeNotFound)
		case err != nil:
			return err
		default:
			w.open[job.ID] = key
		}
	}
	w.all = len(w.open)
	return nil
}

// cut ends the wait early: by the timeout, a signal, or an error.
func (w *waiter) cut(ctx context.Context, err error) error {
	w.progress(true)
	if !errors.Is(context.Cause(ctx), errTimeout) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateLook)
	defer cancel()
	for _, key := range w.open {
		because, err := lateBecause(ctx, w.from, key)
		if err != nil {
			return fmt.Errorf("it is not known whether job %q has ended: %w", key, err)
		}
		if w.json() {
			if err := w.object(ending{Key: key, State: "timeout"}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w.streams.Err, "quipu wait: job %q has not ended in time: %s\n", key, because)
	}
	w.code.add(codeTimeout)
	return w.code.err()
}

// lateLook bounds the look for why jobs have not ended in time.
const lateLook = 5 * time.Second

// lateBecause says what a job waits for, as why does: the first thing, which is the most urgent. The
// error is that of a source that does not answer, which knows nothing of the job.
func lateBecause(ctx context.Context, from source, key string) (string, error) {
	j, err := from.Job(ctx, key, view.Want{Reasons: true})
	switch {
	case err != nil && ctx.Err() != nil, errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrLogin):
		return "", err
	case err != nil || len(j.Reasons) == 0:
		return fmt.Sprintf("`quipu why %s` says what it waits for", key), nil
	case len(j.Reasons) == 1:
		return plain(j.Reasons[0].Text), nil
	}
	return fmt.Sprintf("%s; and %d more, `quipu why %s` says all", plain(j.Reasons[0].Text), len(j.Reasons)-1, key), nil
}

// patiently waits with wait, also for a job that waits for a person. It then says so once.
func (a *app) patiently(
	ctx context.Context, command string, wait func(untilParked bool) (json.RawMessage, error),
) (json.RawMessage, error) {
	output, err := wait(true)
	parked, is := errors.AsType[*quipu.ParkedError](err)
	if !is || ctx.Err() != nil {
		return output, err
	}
	key := plain(parked.Job.Key)
	fmt.Fprintf(a.streams.Err, "%s: job %q waits for a person: quipu why %s\n", command, key, key)
	return wait(false)
}

// ending is a job that has ended, as wait prints it in JSON.
type ending struct {
	Key    string           `json:"key"`
	Job    journal.JobID    `json:"job,omitzero"`
	State  journal.JobState `json:"state"`
	Code   int              `json:"code,omitempty"`
	Output json.RawMessage  `json:"output,omitempty"`
	Error  *view.Failure    `json:"error,omitempty"`
}

// end prints how a job ended. It returns any error that is not the job's own.
func (w *waiter) end(e waited) error {
	end := ending{
		Key: e.job.Key, Job: e.job.ID, State: journal.JobCompleted, Code: collation.CodeOK, Output: e.output,
	}
	failed, ended := errors.AsType[*quipu.JobError](e.err)
	switch {
	case ended:
		end.State, end.Code, end.Error = failed.State, failed.Code, view.FailureOf(failed.Cause)
		w.code.add(codeEnded)
	case errors.Is(e.err, quipu.ErrNotFound): // the job was removed meanwhile
		fmt.Fprintf(w.streams.Err, "quipu wait: %s\n", cli.Harmless(e.err))
		w.code.add(codeNotFound)
		return nil
	case e.err != nil:
		return e.err
	}
	if w.json() {
		return w.object(end)
	}
	w.progress(true)
	text := inert(end.Output)
	if end.Error != nil {
		text = plain(fmt.Sprintf("%d %s", end.Code, failureText(end.Error)))
	}
	_, err := fmt.Fprintf(w.streams.Out, "%s  %s  %s\n", plain(end.Key), end.State, text)
	return err
}

// progress shows on a terminal how many jobs are left; clear removes the line.
func (w *waiter) progress(clear bool) {
	if w.all < 2 || !cli.Terminal(w.streams.Err) {
		return
	}
	fmt.Fprint(w.streams.Err, "\r\x1b[K")
	if !clear {
		fmt.Fprintf(w.streams.Err, "%d of %d jobs have ended", w.all-len(w.open), w.all)
	}
}
