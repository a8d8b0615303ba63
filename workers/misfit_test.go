package workers

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// 3.3: an operator's result that the handler cannot read parks the request again and says
// how to resolve it; there is no further attempt.
func TestAResultThatDoesNotFitIsParked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	Handle(h.reg, "pay", func(ctx context.Context, _ int) (int, error) {
		return effects.Do(ctx, "charge", func(context.Context) (int, error) { return 0, errors.New("cut off") })
	})
	h.open()
	q := ask("pay", 1, `1`)
	require.Equal(t, ClassParked, h.one(q).Error.Class)
	key := h.store.Rows(guid(t, q))[0].Key
	h.store.Decide(guid(t, q), key, func(e *store.EffectRow) { e.State, e.Result = store.EffectCompleted, []byte(`"ch_81"`) })
	h.store.Expire(guid(t, q))
	h.send(q, 2)
	_, hint := h.answer()
	require.Equal(t, journal.ResponseParked, hint.Response.Kind)
	require.Equal(t, ClassMisfit, hint.Response.Error.Class)
	require.Contains(t, hint.Response.Error.Message, `effect "charge" (key `+key.String()+`)`)
	require.Contains(t, hint.Response.Error.Message, "quipu dead retry --effect "+key.String())
}
