package sim

import (
	"context"
	"math/rand/v2"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
)

// killer is a request whose handler kills its process, each time that it runs, until a person is
// asked about it (E9, E10).
type killer struct {
	kills   bool   // the world has one
	request string // "" until one has come
	runs    int
}

// killers is of how many worlds one has a killer. A storm of first deliveries, which are not counted,
// would kill more processes than there is time for.
const killers = 25

func (w *world) drawKiller() {
	dice := rand.New(rand.NewPCG(w.seed, 15)) //nolint:gosec // it must be repeatable
	w.killer = killer{kills: dice.IntN(killers) == 0 && !w.weather.mild && w.features.storm == 0}
}

// killed says whether the body of a handler that is about to begin kills its process.
func (w *world) killed(c *call) bool {
	request, _, _ := strings.Cut(strings.TrimPrefix(c.id, "body "), " ")
	k := &w.killer
	if !k.kills || c.kind != kindBody || !strings.HasPrefix(c.id, "body ") || k.request != "" && k.request != request {
		return false
	}
	k.request = request
	if w.heldForRuns(request) {
		k.kills = false
		return false
	}
	if k.runs++; k.runs > 2*store.MaxRuns { // some first deliveries come twice
		w.wrong("E9: request %s ran %d times without an answer, and nobody was asked", request, k.runs)
	}
	return true
}

// heldForRuns says that the request has been held because it ran too often.
func (w *world) heldForRuns(request string) bool {
	letters, err := w.store.DeadLetters(context.Background(), store.DeadFilter{All: true, Limit: store.MaxPage})
	if err != nil {
		panic(err)
	}
	for _, d := range letters {
		if d.Letter.Row.String() == request && d.Letter.Reason == collation.ReasonRuns {
			return true
		}
	}
	return false
}
