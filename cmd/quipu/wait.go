package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Bounds of wait's polling, and how many jobs one question is about.
const (
	pollFirst = 10 * time.Millisecond
	pollMost  = 500 * time.Millisecond
	pollJobs  = 1000
)

func (a *app) waitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait KEY... | wait -",
		Short: "Wait for the end of jobs",
		Long: `Wait until all jobs have ended, completion tasks included, and print each as it
ends: its state with its output or its error.`,
		Example: "  quipu wait order-42 --timeout 1m\n  quipu ls --state open --keys --limit 0 | quipu wait -",
		Args:    cobra.MinimumNArgs(1),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "end after this `TIME` with code 6; default: never")
	a.completes(cmd)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		if timeout < 0 {
			return cli.Exitf(cli.CodeUsage, "--timeout %s: use a positive time such as 30s", timeout)
		}
		keys, err := a.keys(args)
		if err != nil {
			return err
		}
		return a.with(cmd, reads, func(ctx context.Context, rt *quipu.Runtime) error {
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
				defer cancel()
			}
			w := &waiter{app: a, rt: rt, open: map[journal.JobID]string{}}
			return w.wait(ctx, keys)
		})
	})
	return cmd
}

var errTimeout = errors.New("the timeout has passed")

// waiter waits for many jobs with a few questions.
type waiter struct {
	*app
	rt   *quipu.Runtime
	open map[journal.JobID]string // keys of the jobs that have not ended
	all  int
	code worst
}

func (w *waiter) wait(ctx context.Context, keys []string) error {
	if err := w.find(ctx, keys); err != nil {
		return w.cut(ctx, err)
	}
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		before := len(w.open)
		if err := w.poll(ctx); err != nil && !errors.Is(err, store.ErrUnavailable) {
			return w.cut(ctx, err)
		}
		if len(w.open) == 0 {
			w.progress(true)
			return w.code.err()
		}
		if len(w.open) < before {
			pause = pollFirst
		}
		w.progress(false)
		select {
		case <-ctx.Done():
			return w.cut(ctx, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// find resolves the keys; unknown ones are reported and hold up nothing.
func (w *waiter) find(ctx context.Context, keys []string) error {
	for _, key := range keys {
		job, err := w.rt.Find(ctx, key)
		switch {
		case errors.Is(err, quipu.ErrNotFound):
			fmt.Fprintf(w.streams.Err, "quipu wait: %v\n", err)
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

// cut ends the waiting before the end: by the timeout, a signal, or an error.
func (w *waiter) cut(ctx context.Context, err error) error {
	w.progress(true)
	if !errors.Is(context.Cause(ctx), errTimeout) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	for _, key := range w.open {
		if w.json() {
			if err := w.object(ending{Key: key, State: "timeout"}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w.streams.Err, "quipu wait: job %q has not ended in time; `quipu show %s` says where it is\n", key, key)
	}
	w.code.add(codeTimeout)
	return w.code.err()
}

func (w *waiter) poll(ctx context.Context) error {
	ids := make([]journal.JobID, 0, len(w.open))
	for id := range w.open {
		ids = append(ids, id)
	}
	for len(ids) > 0 {
		n := min(len(ids), pollJobs)
		ended, err := w.rt.Store().Ended(ctx, ids[:n])
		if err != nil {
			return err
		}
		for _, id := range ids[:n] {
			if done, known := ended[id]; known && !done {
				continue
			}
			if err := w.end(ctx, id); err != nil {
				return err
			}
			delete(w.open, id)
		}
		ids = ids[n:]
	}
	return nil
}

// ending is a job that has ended, as wait prints it.
type ending struct {
	Key    string          `json:"key"`
	Job    string          `json:"job,omitempty"`
	State  string          `json:"state"`
	Code   int             `json:"code,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  *failure        `json:"error,omitempty"`
}

func (w *waiter) end(ctx context.Context, id journal.JobID) error {
	v, err := w.rt.Store().Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) { // its generation has gone meanwhile
		fmt.Fprintf(w.streams.Err, "quipu wait: %v\n", err)
		w.code.add(codeNotFound)
		return nil
	}
	if err != nil {
		return err
	}
	if v.State != journal.JobCompleted {
		w.code.add(codeEnded)
	}
	if w.json() {
		return w.object(ending{
			Key: v.Key, Job: v.ID.String(), State: string(v.State), Code: v.Code, Output: raw(v.Output), Error: failureOf(v.Error),
		})
	}
	w.progress(true)
	text := string(v.Output)
	if v.Error != nil {
		text = plain(fmt.Sprintf("%d %s: %s", v.Code, v.Error.Class, v.Error.Message))
	}
	_, err = fmt.Fprintf(w.streams.Out, "%s  %s  %s\n", plain(v.Key), v.State, text)
	return err
}

// progress says on a terminal how many are left; clear removes it.
func (w *waiter) progress(clear bool) {
	if w.all < 2 || !cli.Terminal(w.streams.Err) {
		return
	}
	fmt.Fprint(w.streams.Err, "\r\x1b[K")
	if !clear {
		fmt.Fprintf(w.streams.Err, "%d of %d jobs have ended", w.all-len(w.open), w.all)
	}
}
