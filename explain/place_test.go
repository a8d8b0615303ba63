package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/journal"
)

// An instance is named by its pass and its element where there are several, and by its address
// where the pass does not tell them apart, or on request.
func TestWhyNamesPassesAndElements(t *testing.T) {
	t.Parallel()
	at := func(w *world, name, topic string, dad collation.DAD) *collation.Row {
		r := w.request(name, topic, 1)
		w.Instances[len(w.Instances)-1].Key.DAD, r.DAD = dad, dad
		return r
	}
	texts := func(w *world) (all []string) {
		for _, r := range explain.Why(&w.job) {
			all = append(all, r.Text)
		}
		return all
	}
	w := newWorld(t, everything)
	at(w, "work", "pay.work", ",0,1,0").Held = collation.HeldParked
	require.Equal(t, []string{"work (pass 2) is held (parked) and has no open dead letter"}, texts(w))
	at(w, "work", "pay.work", ",0,0,0").Held = collation.HeldParked
	require.Contains(t, texts(w), "work is held (parked) and has no open dead letter")
	at(w, "work", "pay.work", ",0,0,1").Held = collation.HeldParked
	require.ElementsMatch(t, []string{
		"work is held (parked) and has no open dead letter",
		"work at ,0,1,0 is held (parked) and has no open dead letter",
		"work at ,0,0,1 is held (parked) and has no open dead letter",
	}, texts(w))
	w.job.Addresses = true
	require.Contains(t, texts(w), "work at ,0,0,0 is held (parked) and has no open dead letter")

	list := newWorld(t, everything)
	r := list.request("items", "stock.reserve", 1)
	r.Element = 3
	list.Instances[len(list.Instances)-1].Count = 10
	list.letter(r, "parked", "look outside")
	require.Contains(t, texts(list), "items[3] waits for a person since 2 min: dead letter 7 (parked): look outside")
}

// The child is named whose failure a durable function passed on, and its commands come first.
func TestWhyNamesTheFailedChildOfAFunction(t *testing.T) {
	t.Parallel()
	outcome := func(child journal.JobID, code int, class, message string) *journal.Entry {
		return &journal.Entry{Response: &journal.Response{Child: child, Request: leg1, Code: code, Error: &journal.Failure{Class: class, Message: message}}}
	}
	outcomes := []*journal.Entry{outcome(self, 402, "money", "none"), outcome(other, 402, "money", "no money")}
	said := &journal.Failure{Message: `book: child "pay" of flow invoice ended with error 402 (money): no money`}
	require.Equal(t, other, explain.PassedOn(said, outcomes))
	require.Zero(t, explain.PassedOn(said, outcomes[:1]), "the function dealt with this one")
	require.Zero(t, explain.PassedOn(nil, outcomes))

	w := newWorld(t, everything)
	closed(journal.JobFailed, 402, said.Message)(w)
	w.knows(journal.JobFailed)
	require.NotContains(t, explain.Why(&w.job)[0].Text, "whose child")
	w.job.Child = other
	reason := explain.Why(&w.job)[0]
	require.Contains(t, reason.Text, `by charge, whose child (job "order-42/bill-1") failed: book: child "pay"`)
	require.Equal(t, []string{"quipu why order-42/bill-1", "quipu resume order-42/bill-1", "quipu resume order-42"}, reason.Commands)
}
