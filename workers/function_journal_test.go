package workers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/journaltest"
	"github.com/quipu-journal/quipu/wire"
)

// rowOf is the only row of a kind.
func (o *office) rowOf(kind journal.MessageKind) collation.Row {
	o.t.Helper()
	var found []collation.Row
	for _, r := range o.view().Rows {
		if r.Kind == kind {
			found = append(found, r)
		}
	}
	require.Len(o.t, found, 1, "rows of kind %s", kind)
	return found[0]
}

// answered commits the next answer of the function to the journal.
func (o *office) answered() *wire.Response {
	o.t.Helper()
	m, hint := o.answer()
	r, err := hint.Response.Journal()
	require.NoError(o.t, err)
	row := o.rowOf(journal.MessageRequest)
	o.handle(&collation.Message{
		Kind: journal.MessageResponse, Job: o.job, GUID: journal.GUID(m.Header.GUID), Row: row.GUID,
		Activity: hint.Activity, DAD: collation.DAD(hint.DAD), Turn: hint.Turn, Response: r,
	})
	return hint.Response
}

// woken commits the due wake-up to the journal.
func (o *office) woken() {
	o.t.Helper()
	o.wake(o.rowOf(journal.MessageWakeUp))
}

func (o *office) wake(r collation.Row) {
	o.t.Helper()
	response, err := journal.DecodeResponse(r.Body)
	require.NoError(o.t, err)
	o.handle(&collation.Message{Kind: r.Kind, Job: o.job, GUID: r.GUID, Row: r.GUID, Activity: r.Activity, DAD: r.DAD, Response: response})
}

// ask sends the request of the current row.
func (o *office) ask() {
	o.t.Helper()
	r := o.rowOf(journal.MessageRequest)
	o.send(o.requestOf(r), r.Publication+1)
}

// E12, with the real protocol: a sleep, an early signal, and one that comes in time.
func TestJournalAFunctionSleepsAndWaits(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var names []string
	HandleDurable(o.reg, "pay", func(ctx context.Context, in int) (string, error) {
		for _, name := range []string{"a", "b"} {
			if _, err := effects.Do(ctx, name, func(context.Context) (int, error) {
				names = append(names, name)
				return in, nil
			}); err != nil {
				return "", err
			}
			if err := Sleep(ctx, "after "+name, time.Hour); err != nil {
				return "", err
			}
		}
		first, err := Await[string](ctx, "paid", 0, As("first"))
		if err != nil {
			return "", err
		}
		second, err := Await[string](ctx, "paid", time.Hour, As("second"), SignalKey("k"))
		return first + " " + second, err
	})
	o.open()
	signal := func(caller, payload string) {
		_, err := journaltest.Driven{Store: o.journal}.Signal(t.Context(), &collation.Signal{
			GUID: collation.SignalGUID("shop", "paid", "k", caller), Topic: "paid", Key: "k", Code: 200, Payload: []byte(payload),
		}, collation.Mode{})
		require.NoError(t, err)
	}
	signal("1", `"early"`)
	for range 2 {
		o.ask()
		require.Equal(t, journal.ResponseSuspended, o.answered().Kind)
		require.Equal(t, collation.Never, o.rowOf(journal.MessageRequest).NextAt)
		o.woken()
		require.NotEqual(t, collation.Never, o.rowOf(journal.MessageRequest).NextAt, "what has come sends it out")
	}
	o.ask()
	require.Equal(t, journal.ResponseSuspended, o.answered().Kind)
	o.deliver("1")
	o.woken()
	o.ask()
	require.Equal(t, journal.ResponseSuspended, o.answered().Kind)
	signal("2", `"in time"`)
	require.Len(t, o.view().Rows, 3, "request, bound, wake-up")
	for _, r := range o.view().Rows {
		if r.Kind == journal.MessageWakeUp && strings.Contains(string(r.Body), "signal") {
			o.wake(r)
		}
	}
	o.ask()
	require.Equal(t, "early in time", result[string](t, o.answered()))
	require.Equal(t, journal.JobCompleted, o.view().State)
	require.Equal(t, []string{"a", "b"}, names)
	all, err := o.journal.JobEffects(t.Context(), o.job)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "3"}, []string{all[0].Position, all[1].Position})
}

// deliver gives a kept signal to the wait that was registered for it.
func (o *office) deliver(caller string) {
	o.t.Helper()
	_, err := journaltest.Driven{Store: o.journal}.Deliver(o.t.Context(), []collation.RowKey{{
		Job: collation.Mailbox("shop", "paid", "k"), GUID: collation.SignalGUID("shop", "paid", "k", caller),
	}}, collation.Mode{})
	require.NoError(o.t, err)
}
