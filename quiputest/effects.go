package quiputest

import (
	"context"
	"strings"
	"sync"

	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/view"
)

// Effects lists the recorded effects of all requests of the job, in the order of their first
// entries.
func (j *Job) Effects() []view.Effect {
	j.w.t.Helper()
	found, err := inspect.Effects(context.Background(), j.w.store, j.ID, "", "")
	if err != nil {
		j.w.t.Fatalf("effects of job %q: %v", j.Key, err)
	}
	return found.Effects
}

func (j *Job) effects() []store.JobEffect {
	j.w.t.Helper()
	out, err := j.w.store.JobEffects(context.Background(), j.ID)
	if err != nil {
		j.w.t.Fatalf("effects of job %q: %v", j.Key, err)
	}
	return out
}

// Effect returns the recorded effect with the name. The test fails unless there is exactly one.
func (j *Job) Effect(name string) view.Effect {
	j.w.t.Helper()
	var found []view.Effect
	var names []string
	for _, e := range j.Effects() {
		names = append(names, e.Name)
		if nameOf(e.Name) == name {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		j.w.t.Fatalf("job %q has %d effects %q: its effects are %q", j.Key, len(found), name, names)
	}
	return found[0]
}

// nameOf returns the name without the explicit key that may follow it.
func nameOf(recorded string) string {
	name, _, _ := strings.Cut(recorded, "[")
	return name
}

// Bodies returns how often the body of an effect ran, in all jobs. It is counted when the run of
// its handler ends; a run that reuses a recorded result does not count.
func (w *World) Bodies(effect string) int { return w.bodies.of(effect) }

// Runs returns how often the handler of a topic ran to its end or was abandoned, in all jobs.
func (w *World) Runs(topic string) int { return w.bodies.runsOf(topic) }

// bodies counts runs of handlers and bodies, as the runtime reports them.
type bodies struct {
	observer.Nop
	mu     sync.Mutex
	bodies map[string]int // by the effect's name
	runs   map[string]int // by topic
}

// Attempt implements observer.Observer.
func (b *bodies) Attempt(
	ctx context.Context, _ string, s observer.Subject,
) (context.Context, func(error, []observer.Span)) {
	return ctx, func(_ error, ran []observer.Span) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.runs == nil {
			b.runs, b.bodies = map[string]int{}, map[string]int{}
		}
		b.runs[s.Topic]++
		for i := range ran {
			b.bodies[nameOf(ran[i].Subject.Topic)]++
		}
	}
}

func (b *bodies) of(effect string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bodies[effect]
}

func (b *bodies) runsOf(topic string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[topic]
}
