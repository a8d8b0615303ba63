package examples_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/examples/saga"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// office is a space with a desk, whose agency's books can be read.
type office struct {
	*Space
	t     *testing.T
	books *saga.File
}

func openOffice(t *testing.T, patience time.Duration) *office {
	t.Helper()
	books := &saga.File{Path: filepath.Join(t.TempDir(), "books")}
	desk := saga.Desk{Agency: books, Patience: patience, Cooling: 20 * time.Millisecond}
	return &office{open(t, "saga", desk.Register), t, books}
}

func (o *office) call(key, card string) (json.RawMessage, error) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	return o.Call(ctx, "trip.book", key, saga.Trip{Traveller: "Ada", To: "Lima", Card: card})
}

// did returns the lines of the books, each without the reference at its end.
func (o *office) did() (words []string) {
	o.t.Helper()
	lines, err := o.books.Lines()
	require.NoError(o.t, err)
	for _, line := range lines {
		words = append(words, line[:strings.LastIndex(line, " ")])
	}
	return words
}

var (
	booked    = []string{"book flight", "book hotel"}
	cancelled = slices.Concat(booked, []string{"cancel hotel", "cancel flight"})
)

// A trip runs from top to bottom, and each call outside is applied once.
func TestTrip(t *testing.T) {
	t.Parallel()
	o := openOffice(t, time.Minute)
	_, err := o.Signal(t.Context(), "trip.confirmed", "trip-1", saga.Confirmation{By: "Ada"})
	require.NoError(t, err)
	out, err := o.call("trip-1", "visa")
	require.NoError(t, err)
	var got saga.Itinerary
	require.NoError(t, json.Unmarshal(out, &got))
	require.NotEmpty(t, got.Reference)
	require.Contains(t, got.Receipt, "charge visa ")
	got.Reference, got.Receipt = "", ""
	require.Equal(t, saga.Itinerary{Policy: "Ada-Lima", ConfirmedBy: "Ada"}, got)
	require.Equal(t, append(booked[:2:2], "charge visa"), o.did())
	again, err := o.call("trip-1", "visa")
	require.NoError(t, err)
	require.Equal(t, out, again)
	require.Len(t, o.did(), 3)
}

// After a refused card, or without an answer of the traveller, the bookings are cancelled in
// reverse order, and the job ends with that error.
func TestTripThatCannotGoOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patience time.Duration
		signal   bool
		code     int
	}{
		"refused card": {time.Minute, true, 402},
		"no answer":    {50 * time.Millisecond, false, 408},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t, c.patience)
			if c.signal {
				_, err := o.Signal(t.Context(), "trip.confirmed", "trip-2", saga.Confirmation{By: "Ada"})
				require.NoError(t, err)
			}
			_, err := o.call("trip-2", "declined")
			var ended *quipu.JobError
			require.ErrorAs(t, err, &ended)
			require.Equal(t, c.code, ended.Code)
			require.Equal(t, cancelled, o.did())
		})
	}
}

// A trip that is interrupted while it waits is undone by a job of its own.
func TestTripThatIsInterrupted(t *testing.T) {
	t.Parallel()
	o := openOffice(t, time.Minute)
	ended := make(chan error, 1)
	go func() {
		_, err := o.Call(context.WithoutCancel(t.Context()), "trip.book", "trip-3", saga.Trip{Traveller: "Ada", To: "Lima"})
		ended <- err
	}()
	require.Eventually(t, func() bool {
		job, err := o.Find(t.Context(), "trip-3")
		if err != nil {
			return false
		}
		v, err := below.Of(o.Runtime).Job(t.Context(), job.ID)
		return err == nil && len(v.Waits) == 1
	}, time.Minute, 10*time.Millisecond, "it waits for the traveller")
	require.Equal(t, booked, o.did())
	_, err := o.Interrupt(t.Context(), "trip-3", quipu.Reason("ill"))
	require.NoError(t, err)
	var stopped *quipu.JobError
	require.ErrorAs(t, <-ended, &stopped)
	require.Equal(t, journal.JobInterrupted, stopped.State)
	var undo []quipu.JobSummary
	require.Eventually(t, func() bool {
		undo, err = o.Jobs(t.Context(), quipu.JobFilter{Flow: flow.UndoName, States: []journal.JobState{journal.JobCompleted}})
		return err == nil && len(undo) == 1
	}, time.Minute, 10*time.Millisecond)
	require.Contains(t, undo[0].Job.Key, "trip-3")
	require.Equal(t, cancelled, o.did())
}

// E14: the function is a function; a unit test calls it as one.
func TestBook(t *testing.T) {
	t.Parallel()
	books := &saga.File{Path: filepath.Join(t.TempDir(), "books")}
	desk := saga.Desk{Agency: books, Patience: time.Minute}
	ctx := workers.WithSignals(t.Context(), func(context.Context, string, string) (any, error) {
		return saga.Confirmation{By: "Ada"}, nil
	})
	ctx = workers.WithChildren(ctx, func(context.Context, string, string, json.RawMessage) (any, error) {
		return saga.Policy{Number: "P1"}, nil
	})
	_, err := workers.Plain(ctx, desk.Book, saga.Trip{Card: "declined"})
	var refused *workers.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 402, refused.Code)
	require.Equal(t, cancelled, (&office{t: t, books: books}).did())
}
