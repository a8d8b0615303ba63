package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal/store"
)

// T2, I11: the first publication of a turn is looked for after one Resend, however
// many tries, each with publications of its own, went before.
func TestT2BackoffBeginsAnewWithATurn(t *testing.T) {
	t.Parallel()
	s := &sweeper{e: &Engine{cfg: Config{Resend: 5 * time.Second}}}
	const second = 1_000_000
	for name, c := range map[string]struct {
		row  store.DueRow
		most time.Duration
	}{
		"first of turn 9":       {store.DueRow{Publication: 8, Turn: 9, TurnSent: 8, Now: 900 * second}, 6 * time.Second},
		"lost once":             {store.DueRow{Publication: 9, Turn: 9, TurnSent: 9, PublishedAt: 895 * second, Now: 900 * second}, 11 * time.Second},
		"lost again and again":  {store.DueRow{Publication: 9, Turn: 1, TurnSent: 1, PublishedAt: 0, Now: 900 * second}, 330 * time.Second},
		"waits since long, new": {store.DueRow{Publication: 1, Turn: 1, TurnSent: 1, PublishedAt: 0, Now: 900 * second}, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.LessOrEqual(t, s.again(c.row), c.most)
			require.GreaterOrEqual(t, s.again(c.row), 4*time.Second)
		})
	}
}
