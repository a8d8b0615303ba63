package engine

import (
	"context"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Times of unserved topics.
const (
	// unservedLook is the least pause between two looks at the living processes.
	unservedLook = 30 * time.Second
	// unservedAgain is when a topic is warned about again.
	unservedAgain = 10 * time.Minute
	// unservedMost bounds the topics that are remembered.
	unservedMost = 1000
)

// unserved warns of topics that have requests and no living process with a handler. It does not
// see workers in other languages, so the warning may be about one of their topics.
type unserved struct {
	looked time.Time
	named  map[string]time.Time
}

// look gets the due rows. A request that was sent and is due again was taken by nobody, or its
// message was lost.
func (u *unserved) look(ctx context.Context, e *Engine, due []store.DueRow) {
	var topics []string
	for _, r := range due {
		if r.Kind == journal.MessageRequest && r.Publication > 0 &&
			(r.TurnSent == r.Turn || r.TurnSent == collation.NoTurn) && !slices.Contains(topics, r.Topic) {
			topics = append(topics, r.Topic)
		}
	}
	if len(topics) == 0 || time.Since(u.looked) < unservedLook {
		return
	}
	u.looked = time.Now()
	living, err := e.cfg.Store.Processes(ctx)
	if err != nil {
		return // the sweep reports trouble with the database
	}
	for _, topic := range topics {
		served := slices.ContainsFunc(living, func(p store.ProcessView) bool {
			return slices.Contains(p.Topics, topic)
		})
		if served || time.Since(u.named[topic]) < unservedAgain {
			continue
		}
		if u.named == nil || len(u.named) >= unservedMost {
			u.named = map[string]time.Time{}
		}
		u.named[topic] = time.Now()
		e.cfg.Logger.Warn("requests wait for a topic that no living process has a handler for; a worker in another language is not seen here", "topic", topic)
	}
}
