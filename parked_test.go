package quipu_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

// A wait and a call whose deadline passes say which job it was, and who knows what it waits for.
func TestALateWaitNamesItsJob(t *testing.T) {
	t.Parallel()
	s := newSpaceOf(t, workers.New())
	var err error
	waited := func() bool { return err != nil && strings.Contains(err.Error(), "wait for job") }
	for deadline := 300 * time.Millisecond; !waited(); deadline *= 2 { // a busy machine may not begin it in time, or not learn that it did
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		_, err = s.Call(ctx, "nobody.serves", "late", 1)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	job, unknown := s.Find(t.Context(), "late")
	require.NoError(t, unknown)
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-late.Done()
	for range 2 {
		require.ErrorContains(t, err, `wait for job "late": context deadline exceeded`)
		require.ErrorContains(t, err, "`quipu why late`")
		_, err = s.Wait(late, job)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	_, err = s.Wait(late, quipu.Job{ID: job.ID})
	require.ErrorContains(t, err, "`quipu why "+job.ID.String()+"`", "the ID where the key is not known")
}

// With UntilParked a wait ends when a person must decide; at its deadline it names the dead letter.
func TestWaitsForAPerson(t *testing.T) {
	t.Parallel()
	reg := workers.New()
	workers.Handle(reg, "charge", func(ctx context.Context, in int) (string, error) {
		return effects.Do(ctx, "charge", func(context.Context) (string, error) { return "", errors.New("connection cut off") })
	})
	s := newSpaceOf(t, reg)
	job := quipu.Job{Key: "c-1"}
	_, err := s.Call(devtest.Context(t), "charge", "c-1", 1, quipu.UntilParked(true))
	var parked *quipu.ParkedError
	require.ErrorAs(t, err, &parked)
	id, err := s.Find(t.Context(), "c-1")
	require.NoError(t, err)
	var late *quipu.ParkedError
	s.until("a late wait names the dead letter", func() bool { // it looks for it only so long
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = s.Wait(ctx, id)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return errors.As(err, &late)
	})
	_, err = s.Wait(t.Context(), job, quipu.UntilParked(true))
	require.ErrorAs(t, err, &parked)
	require.Len(t, parked.DeadLetters, 1)
	letter := parked.DeadLetters[0]
	require.Equal(t, late.DeadLetters, parked.DeadLetters)
	require.Equal(t, []string{"c-1", "quipu_call"}, []string{letter.Job.Key, letter.Flow})
	require.ErrorContains(t, err, `job "c-1" waits for a person; dead letter`)
	require.ErrorContains(t, err, "`quipu why c-1`")

	decide := s.Operator().Decide
	for says, d := range map[string]quipu.Decision{
		`verdict ""`:          {},
		"no Code and Message": {Verdict: quipu.Retry, Code: 500},
		"retry has no Result": {Verdict: quipu.Retry, Result: 1},
		"fail has no Effect":  {Verdict: quipu.Fail, Effect: [32]byte{1}},
		"code 200":            {Verdict: quipu.Fail, Code: 200},
	} {
		d.DeadLetter = letter.ID
		err := decide(t.Context(), d)
		require.ErrorIs(t, err, quipu.ErrInput)
		require.ErrorContains(t, err, says)
	}
	err = decide(t.Context(), quipu.Decision{DeadLetter: letter.ID, Verdict: quipu.Done, Effect: [32]byte{1}})
	require.ErrorIs(t, err, quipu.ErrInput, "no such effect")
	require.ErrorContains(t, err, fmt.Sprintf("dead letter %d: the request has no effect with the key 01", letter.ID))
	require.NotContains(t, err.Error(), "the database")
	require.NoError(t, decide(t.Context(), quipu.Decision{DeadLetter: letter.ID, Verdict: quipu.Done, Result: "receipt", Who: "ann", Reason: "in their books"}))
	_, err = quipu.WaitAs[int](devtest.Context(t), s.Runtime, job)
	require.ErrorContains(t, err, "output of job c-1 is no int")
}

// Each reason of a dead letter has its advice in docs/cli.md.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/cli.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "### Reasons of dead letters")
	table, _, _ = strings.Cut(table, "\n## ")
	reasons := []quipu.DeadLetterReason{
		quipu.ReasonParked, quipu.ReasonConfirm, quipu.ReasonResultMisfit, quipu.ReasonNondeterminism, quipu.ReasonUndo,
		quipu.ReasonRuns, quipu.ReasonStuck, quipu.ReasonSlow, quipu.ReasonLoads, quipu.ReasonUndecodable, quipu.ReasonForeign, quipu.ReasonRefused, quipu.ReasonChanged,
	}
	require.Equal(t, len(reasons)+2, strings.Count(table, "\n|"))
	for _, reason := range reasons {
		require.Contains(t, table, "| `"+string(reason)+"` |")
	}
}
