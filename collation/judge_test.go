package collation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// What an operator may say of an effect that the action names, by class and state (3.3).
func TestJudgeNamed(t *testing.T) {
	t.Parallel()
	const refused = Decision("refused")
	type said struct{ retry, done Decision }
	for class, states := range map[string]map[EffectState]said{
		ClassGuarded: {
			EffectStarted: {EffectUndone, EffectDone}, EffectCompleted: {EffectVoided, EffectVouched}, EffectNotDone: {refused, refused},
		},
		ClassIdempotent: {
			EffectStarted: {EffectUndone, EffectDone}, EffectCompleted: {EffectVoided, EffectVouched}, EffectNotDone: {refused, refused},
		},
		ClassUndo: {EffectStarted: {refused, EffectDone}, EffectCompleted: {refused, refused}},
		ClassPure: {EffectCompleted: {refused, refused}},
		ClassTx:   {EffectCompleted: {refused, refused}, EffectNotDone: {refused, refused}},
	} {
		for state, want := range states {
			f := EffectRow{Key: journal.Digest{7}, Name: "pay", Class: class, State: state, Result: []byte(`1`)}
			for _, c := range []struct {
				action Action
				want   Decision
			}{{Action{Retry: true}, want.retry}, {Action{Done: []byte(`1`)}, want.done}} {
				a := c.action
				a.Effect = f.Key
				require.NoError(t, a.Check())
				got, about, err := a.Judge(HeldParked, []EffectRow{{Key: journal.Digest{1}, Class: ClassGuarded, State: EffectStarted}, f})
				if c.want == refused {
					require.ErrorIs(t, err, ErrRejected, "%s, %s: %s", class, state, a.Name())
					continue
				}
				require.NoError(t, err, "%s, %s: %s", class, state, a.Name())
				require.Equal(t, c.want, got, "%s, %s: %s", class, state, a.Name())
				require.Equal(t, f, *about)
			}
		}
	}
}

// If no effect is named, an unfinished Guarded one goes before the others, and a retry touches
// nothing else.
func TestJudgeUnnamed(t *testing.T) {
	t.Parallel()
	guarded := EffectRow{Key: journal.Digest{1}, Name: "pay", Class: ClassGuarded, State: EffectStarted}
	log := EffectRow{Key: journal.Digest{2}, Name: "log", Class: ClassIdempotent, State: EffectStarted}
	sent := EffectRow{Key: journal.Digest{3}, Name: "send", Class: ClassGuarded, State: EffectCompleted, Result: []byte(`1`)}
	seen := EffectRow{Key: journal.Digest{4}, Name: "seen", Class: ClassGuarded, State: EffectCompleted, Vouched: true}
	declined := EffectRow{Key: journal.Digest{5}, Name: "card", Class: ClassGuarded, State: EffectCompleted, Error: &journal.Failure{}}
	hotel := EffectRow{Key: journal.Digest{6}, Name: "undo:hotel", Class: ClassUndo, State: EffectStarted}
	flight := EffectRow{Key: journal.Digest{7}, Name: "undo:flight", Class: ClassUndo, State: EffectStarted}
	for name, c := range map[string]struct {
		effects     []EffectRow
		retry, done string // the effect that is meant; "-": none, "?": refused
	}{
		"nothing":                 {nil, "-", "?"},
		"an unfinished one":       {[]EffectRow{sent, log, guarded, seen}, "pay", "pay"},
		"one that runs by itself": {[]EffectRow{sent, log}, "-", "log"},
		"completed ones":          {[]EffectRow{declined, sent, seen}, "-", "send"},
		"registered to undo":      {[]EffectRow{hotel, sent, flight}, "-", "send"},
		"only registered to undo": {[]EffectRow{hotel, flight}, "-", "?"},
		"vouched for":             {[]EffectRow{declined, seen}, "-", "?"},
	} {
		for _, a := range []Action{{Retry: true}, {Done: []byte(`null`)}} {
			want := c.retry
			if a.Done != nil {
				want = c.done
			}
			decision, f, err := a.Judge(HeldParked, c.effects)
			switch want {
			case "?":
				require.ErrorIs(t, err, ErrRejected, name)
			case "-":
				require.NoError(t, err, name)
				require.Equal(t, LeaveEffects, decision, name)
			default:
				require.NoError(t, err, name)
				require.Equal(t, want, f.Name, name)
			}
		}
	}
	many := make([]EffectRow, 30)
	for i := range many {
		many[i] = guarded
		many[i].Key[0] = byte(i)
	}
	_, _, err := (&Action{Retry: true}).Judge(HeldParked, many)
	require.ErrorContains(t, err, "30 effects are in doubt")
	require.ErrorContains(t, err, many[19].Key.String())
	require.ErrorContains(t, err, "and 10 more")
}

// TestE10ALetterIsAskedWhatItAsks: an answer to a dead letter about something else says nothing
// of an unfinished Guarded effect.
func TestE10ALetterIsAskedWhatItAsks(t *testing.T) {
	t.Parallel()
	pay := EffectRow{Key: journal.Digest{1}, Name: "pay", Class: ClassGuarded, State: EffectStarted}
	refund := EffectRow{Key: journal.Digest{2}, Name: "refund", Class: ClassUndo, State: EffectStarted}
	ran := EffectRow{Key: journal.Digest{3}, Name: "ran", Class: ClassIdempotent, State: EffectStarted}
	sent := EffectRow{Key: journal.Digest{4}, Name: "sent", Class: ClassGuarded, State: EffectCompleted, Result: []byte(`1`)}
	first := EffectRow{Key: journal.Digest{5}, Name: "first", Class: ClassUndo, State: EffectStarted}
	all := []EffectRow{first, pay, refund, ran, sent}
	for reason, want := range map[string][2]string{
		ClassNondeterminism: {"", "?"}, ClassUndo: {"", "refund"}, ClassConfirm: {"", "sent"},
		HeldParked: {"pay", "pay"},
	} {
		for i, a := range []Action{{Retry: true}, {Done: []byte(`null`)}} {
			_, f, err := a.Judge(reason, all)
			if want[i] == "?" {
				require.ErrorIs(t, err, ErrRejected, reason)
				continue
			}
			require.NoError(t, err, reason)
			if want[i] == "" {
				require.Nil(t, f, reason)
			} else {
				require.Equal(t, want[i], f.Name, reason)
			}
		}
	}
	_, f, err := (&Action{Done: []byte(`null`)}).Judge(ClassUndo, []EffectRow{pay, ran})
	require.NoError(t, err)
	require.Equal(t, "ran", f.Name, "in a job of compensations they are effects")
}
