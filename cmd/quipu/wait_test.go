package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// silent is a database that does not answer, or no more once it has found the job.
type silent struct {
	source
	finds bool
}

func (s silent) Find(ctx context.Context, key string) (quipu.Job, error) {
	if s.finds {
		return quipu.Job{ID: journal.JobID{1}, Key: key}, nil
	}
	<-ctx.Done()
	return quipu.Job{}, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
}

func (silent) Wait(ctx context.Context, _ quipu.Job, _ bool) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Job(context.Context, string, view.Want) (*view.Job, error) {
	return nil, store.Unavailable("no route to host")
}

// A database that hangs is no job that has not ended in time: nobody knows.
func TestWaitForASilentDatabase(t *testing.T) {
	t.Parallel()
	for says, s := range map[string]silent{
		"the database did not answer within --timeout":                {},
		`it is not known whether job "k" has ended: no route to host`: {finds: true},
	} {
		ctx, cancel := within(t.Context(), 10*time.Millisecond)
		defer cancel()
		a := &app{streams: cli.Streams{Out: io.Discard, Err: io.Discard}}
		err := (&waiter{app: a, from: s, open: map[journal.JobID]string{}}).wait(ctx, []string{"k"})
		require.ErrorContains(t, err, says)
		require.Equal(t, cli.CodeFailed, codeOf(err))
	}
}
