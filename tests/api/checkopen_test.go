package api_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/workers"
)

const journeys = `
flow: journeys
version: "1"
activities:
  start: {type: trigger}
  pack: {type: worker, topic: pack}
  book: {type: worker, topic: book, input: "${ start.output }"}
  ship: {type: worker, topic: ship}
transitions: {start: [pack], pack: [book], book: [ship]}
`

type journey struct{ Days int }

// register adds the handlers of one build; book is its durable function.
func register(book func(context.Context, journey) (string, error)) *workers.Registry {
	reg := workers.New()
	nothing := func(context.Context, any) (any, error) { return nil, nil }
	workers.Handle(reg, "pack", nothing)
	workers.Handle(reg, "ship", nothing)
	workers.HandleDurable(reg, "book", book)
	return reg
}

// step is an effect of a durable function.
func step(ctx context.Context, name string) (int, error) {
	return effects.Do(ctx, name, func(context.Context) (int, error) { return 7, nil }, effects.Idempotent)
}

// book is the build that runs.
func book(ctx context.Context, _ journey) (string, error) {
	if _, err := step(ctx, "flight"); err != nil {
		return "", err
	}
	return workers.Await[string](ctx, "agreed", 0)
}

func (s *space) misfits(c quipu.OpenCheck) (all []string) {
	s.t.Helper()
	for m, err := range s.CheckOpen(s.t.Context(), c) {
		require.NoError(s.t, err)
		all = append(all, m.String())
	}
	slices.Sort(all)
	return all
}

// The handlers of a new build are compared with what the open jobs recorded (O12).
func TestCheckOpenHandlers(t *testing.T) {
	t.Parallel()
	s := newSpaceOf(t, register(book), journeys)
	for _, key := range []string{"a", "b"} {
		s.waits(s.begin("journeys", key, journey{3}))
	}
	fits := func(book func(context.Context, journey) (string, error)) []string {
		return s.misfits(quipu.OpenCheck{Workers: register(book)})
	}
	require.Empty(t, fits(book))
	require.Empty(t, fits(func(ctx context.Context, in journey) (string, error) {
		said, err := book(ctx, in)
		if err == nil {
			_, err = step(ctx, "behind what is recorded")
		}
		return said, err
	}))
	require.Len(t, fits(func(context.Context, journey) (string, error) { return "", workers.Fail(402, "too far") }), 2, "it leaves out what is recorded")

	other := fits(func(ctx context.Context, in journey) (string, error) {
		if _, err := step(ctx, "train"); err != nil {
			return "", err
		}
		return book(ctx, in)
	})
	require.Len(t, other, 2)
	require.Contains(t, other[0], `job "a" of flow journeys version 1, book at ,0,0,0: the function takes another path than the recorded one: at position 1 it asks for effect "train"`)
	require.Contains(t, fits(func(ctx context.Context, _ journey) (string, error) {
		return effects.Do(ctx, "flight", func(context.Context) (string, error) { return "", nil }, effects.Idempotent)
	})[1], "flight", "a recorded number is no text")
	require.Contains(t, fits(func(context.Context, journey) (string, error) { panic("no till") })[0], "no till")

	reg := workers.New() // a topic that an open job can still come to has to be served, and an input has to fit
	workers.HandleDurable(reg, "book", func(ctx context.Context, _ struct{ Days string }) (string, error) {
		return book(ctx, journey{})
	})
	all := s.misfits(quipu.OpenCheck{Workers: reg})
	require.Len(t, all, 3, "pack is behind both jobs, ship is said once")
	require.Contains(t, all[0], `job "a" of flow journeys version 1, book at ,0,0,0: error 400: the input of book does not fit into struct { Days string }`)
	require.Contains(t, all[2], "ship: the job can come to topic ship, which this build does not serve")
	require.Len(t, s.misfits(quipu.OpenCheck{Workers: reg, Elsewhere: []string{"ship"}}), 2)

	raw := workers.New()
	ran := false
	workers.Handle(raw, "book", func(context.Context, struct{ Days string }) (any, error) { ran = true; return nil, nil })
	require.Len(t, s.misfits(quipu.OpenCheck{Workers: raw, Elsewhere: []string{"ship"}}), 2)
	require.False(t, ran, "to run a handler that is no durable function would do its work")

	var jobs, requests int64
	n := 0
	for range s.CheckOpen(t.Context(), quipu.OpenCheck{Workers: raw, Progress: func(j, r int64) {
		jobs, requests = j, r
	}}) {
		if n++; n == 1 {
			break
		}
	}
	require.Equal(t, []int64{0, 0}, []int64{jobs, requests}, "the caller had enough at the first job")
	require.Empty(t, s.misfits(quipu.OpenCheck{Workers: register(book), Progress: func(j, r int64) {
		jobs, requests = j, r
	}}))
	require.Equal(t, []int64{2, 2}, []int64{jobs, requests})

	mistaken := workers.New() // which is an error, not a misfit
	workers.HandleRaw(mistaken, "book", nil)
	for _, err := range s.CheckOpen(t.Context(), quipu.OpenCheck{Workers: mistaken}) {
		require.ErrorContains(t, err, "its function is nil")
	}
}

const trier = `
flow: trier
version: "1"
activities:
  start: {type: trigger}
  try: {type: await, flow: tried, input: {n: 1}, retry: {attempts: 2, backoff: 1h}}
transitions: {start: [try]}
`

const tried = `
flow: tried
version: "VERSION"
input: {type: object, required: [MEMBER]}
activities:
  start: {type: trigger}
  work: {type: worker, topic: fail, input: {code: 503, message: later}, retry: {attempts: 1}}
transitions: {start: [work]}
`

// Flow files are compared with what is deployed, and with the inputs of children that wait for
// their start.
func TestCheckOpenFlows(t *testing.T) {
	t.Parallel()
	version := func(v, member string) *flow.Flow {
		text := []byte(strings.NewReplacer("VERSION", v, "MEMBER", member).Replace(tried))
		f, err := flow.Parse("tried.yaml", text)
		require.NoError(t, err)
		return f
	}
	s := newSpace(t, string(version("1", "n").Canonical()), trier)
	job := s.begin("trier", "t", nil)
	require.Eventually(t, func() bool {
		info := s.info(job)
		return len(info.Messages) == 1 && info.Messages[0].Due.After(time.Now().Add(time.Minute)) // the second attempt
	}, time.Minute, 20*time.Millisecond)
	require.Empty(t, s.misfits(quipu.OpenCheck{Flows: []*flow.Flow{version("1", "n"), version("2", "n")}}))
	require.Equal(t, []string{"flow tried version 1: it is deployed with other content: give the changed flow a new version"},
		s.misfits(quipu.OpenCheck{Flows: []*flow.Flow{version("1", "m")}}))
	all := s.misfits(quipu.OpenCheck{Flows: []*flow.Flow{version("2", "m")}})
	require.Len(t, all, 1)
	require.Contains(t, all[0], `job "t" of flow trier version 1, try at ,0,0: its child `)
	require.Contains(t, all[0], "has not begun, and version 2 of flow tried refuses its input")
}

// What takes back the work of a function that somebody else ended is compared with that function.
func TestCheckOpenCompensations(t *testing.T) {
	t.Parallel()
	booked := func(name string) *workers.Registry {
		return register(func(ctx context.Context, _ journey) (string, error) {
			if err := workers.Compensate(ctx, name, func(context.Context) error { return errors.New("the office is closed") }); err != nil {
				return "", err
			}
			return workers.Await[string](ctx, "agreed", 0)
		})
	}
	s := newSpaceOf(t, booked("flight"), journeys)
	job := s.begin("journeys", "a", journey{3})
	s.waits(job)
	_, err := s.Interrupt(t.Context(), job)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		all, err := s.Jobs(t.Context(), quipu.JobFilter{Prefix: "a/book.undo-"})
		require.NoError(t, err)
		return len(all.Jobs) == 1
	}, time.Minute, 20*time.Millisecond)
	require.Empty(t, s.misfits(quipu.OpenCheck{Workers: booked("flight")}))
	all := s.misfits(quipu.OpenCheck{Workers: booked("train")})
	require.Len(t, all, 1)
	require.Contains(t, all[0], `job "a/book.undo-`)
	require.Contains(t, all[0], "takes another path")
}
