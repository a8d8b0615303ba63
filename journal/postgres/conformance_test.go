package postgres

import (
	"testing"

	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/journal/store"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(t *testing.T) store.Store { return open(t) })
}
