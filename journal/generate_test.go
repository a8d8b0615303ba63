package journal_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

func failure(m string) *journal.Failure {
	return &journal.Failure{Class: "error", Message: m, Data: []byte(`{"n":1.5}`), Stack: "main.go:1\n\tat f"}
}

// fullResponse is a response with every field set.
func fullResponse() *journal.Response {
	return &journal.Response{
		Kind: journal.ResponseTerminal, Code: 500, Request: guid(7), Turn: 2, Attempt: 3,
		Output: []byte(`{"ok":true}`), Ref: digest(8), Error: failure("card \"declined\""), RetryAfter: 1_500_000,
		By: journal.BySignal, Signal: guid(18), Who: "ann", Number: 4, Child: journal.JobID{15: 19}, Element: 6,
		Pauses: []journal.Pause{
			{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "cool-off", Position: "1"}, For: math.MaxInt64},
			{
				PauseRef: journal.PauseRef{Kind: journal.PauseChild, Name: "ship", Position: "2.0.1"},
				Topic:    "reviewed", Key: "order-42", Flow: "shipping", Version: "3", Input: []byte(`{"n":1}`),
			},
		},
		Undone: true, Began: 7, Ran: 8, Taken: &journal.Taken{Generation: 1, Chain: guid(34), Seq: 5, Forked: true},
		Of: &journal.PauseRef{Kind: journal.PauseSignal, Name: "review", Position: "3"},
	}
}

// full is an entry with every field set, more than any real one.
func full() *journal.Entry {
	return &journal.Entry{
		Space: "shop", Job: journal.JobID{0: 1, 15: 2}, Key: "order-42", Generation: 3, Chain: guid(4), Seq: 1,
		Kind: journal.KindCreated, GUID: guid(5), Activity: "charge", DAD: ",0,0",
		Marks: []journal.Mark{
			journal.MarkEntered, journal.MarkWork, journal.MarkChildren, journal.MarkClosed, journal.MarkTasks,
		},
		Ledger: 201_100_000_000_001, Receipt: 111_100_000_001, Semaphore: new(int64),
		Joins:    []journal.LedgerMove{{Activity: "meet", DAD: ",0,0,0", After: 10_200_000_000, Arrivals: 1}},
		Response: fullResponse(),
		Result: &journal.Result{
			Code: 500, Output: []byte(`[null]`), Error: failure("gathered"), By: journal.ByTimer,
			Taken: &journal.Taken{Generation: 2, Chain: guid(35), Seq: 6, Forked: true},
		},
		Dispatched: []journal.Dispatched{
			{
				GUID: guid(9), Kind: journal.MessageRequest, Activity: "next", DAD: ",0,0,0", Topic: "t.x", Input: journal.Sum(guid(26)),
				Folded: 1, Arrivals: 2,
			},
			{GUID: guid(20), Kind: journal.MessageStart, DAD: ",0", Job: journal.JobID(guid(20)), At: math.MaxInt64},
		},
		Updated: []journal.Updated{{
			GUID: guid(10), Kind: journal.MessageAnswer, Turn: 1, Attempt: 2, NextAt: math.MaxInt64, Held: "parked",
		}},
		Elements: &journal.Elements{Count: 7, Parallel: 5, Inputs: journal.Sums{}.Append(journal.Sum(guid(27)))},
		Open:     new(int),
		Waits:    []journal.Wait{{GUID: guid(21), Topic: "paid", Key: "o-42", Repeat: true}},
		Ended:    guid(11), CancelledByClose: []journal.GUID{guid(12), guid(13)},
		Cancelled:   []journal.GUID{guid(22), guid(23)},
		Undelivered: []journal.Delivery{{Activity: "feed", DAD: ",0,1", Signal: guid(36), Who: "bob", Number: 3, Ends: true}},
		Abandoned:   2,
		Close:       &journal.Close{State: journal.JobFailed, Code: 500, Output: []byte(`null`), Error: failure("é😀")},
		Bound:       &journal.Bound{Chain: guid(7), Head: journal.Head{Seq: 4, Hash: digest(15)}},
		Flow:        &journal.FlowRef{Name: "order", Version: "1", Digest: digest(16)},
		Parent: &journal.Parent{
			Space: "shop", Job: journal.JobID{15: 24}, Activity: "ship", DAD: ",0,3", Leg1: guid(25), Turn: 2, Awaited: true, Depth: 3,
		},
		Input: []byte(`{"total":9007199254740993}`),
		Effect: &journal.Effect{
			Key: digest(17), Name: "pay", Class: "guarded", N: 1, Turn: 2, Fence: 7,
			Result: []byte(`[1,2]`), Error: failure("no"), Late: true, Position: "4.1.2",
			Taken:   &journal.Taken{Generation: 1, Chain: guid(33), Seq: 7, Forked: true},
			Finding: &journal.Finding{Verifier: "bank.Charges", Error: "connection reset", Asked: 1_700_000_000_000_001, Took: 9, Note: "looked"},
		},
		Operator: &journal.Operator{Action: "retry", Who: "ann", Reason: "again", Login: "ops"},
		Repaired: []journal.Difference{{Table: "jobs", Row: "order-42", Column: "semaphore", Stored: "7", Journal: "1"}},
		Trouble:  &journal.Trouble{Reason: "stuck", Message: "90 entries"},
		From: &journal.From{
			Job: journal.JobID{15: 28}, Generation: 2, Head: journal.Head{Seq: 40, Hash: digest(29)},
			Root: journal.JobID{15: 30}, RootGeneration: 1, Activity: "charge", DAD: ",0,0", Who: "ann", Reason: "the card is valid again",
			Children: []journal.FromChild{{
				Activity: "ship", DAD: ",0,3", Element: 2, Of: &journal.PauseRef{Kind: journal.PauseChild, Name: "ship", Position: "1"},
				Job: journal.JobID{15: 31},
			}},
			Fork: &journal.Fork{Job: journal.JobID{15: 36}, Generation: 3, At: 12},
		},
		Next:   journal.JobID{15: 32},
		Writer: "w1", Build: "b1", Time: 1_700_000_000_000_000, Tags: []string{"customer:42", "vip"}, Trace: "00-aa-bb-01",
	}
}

// record is the entry as stored.
func record(e *journal.Entry) journal.Record {
	return journal.Record{Job: e.Job, Chain: e.Chain, Seq: e.Seq, Body: journal.Encode(e)}
}

// body is a record with nothing but a body.
func body(text string) journal.Record { return journal.Record{Body: []byte(text)} }

func guid(n byte) journal.GUID     { return journal.GUID{6: 0x80, 8: 0x80, 15: n} }
func digest(n byte) journal.Digest { return journal.Digest{0: n, 31: n} }

// entries draws entries of every kind.
func entries() *rapid.Generator[*journal.Entry] {
	return rapid.Custom(func(t *rapid.T) *journal.Entry {
		e := drawn[journal.Entry]().Draw(t, "entry")
		if e.Kind != journal.KindCreated { // the first entry says it for all
			e.Space, e.Generation, e.Trace, e.Tags = "", 0, "", nil
		}
		if e.Parent != nil {
			e.Parent.Space = e.Space
		}
		return &e
	})
}

// drawn draws a part of an entry, with anything in it that can be written.
func drawn[T any]() *rapid.Generator[T] {
	return rapid.Custom(func(t *rapid.T) (v T) {
		draw(t, fmt.Sprintf("%T", v), reflect.ValueOf(&v).Elem())
		return v
	})
}

var kinds = []journal.Kind{
	journal.KindCreated, journal.KindLeg1, journal.KindLeg2, journal.KindStale, journal.KindSignal,
	journal.KindInterrupt, journal.KindEffectStarted, journal.KindEffectCompleted, journal.KindEffectFailed,
	journal.KindDeadLetter, journal.KindOperator, journal.KindQuarantine, journal.KindExpired, journal.KindResumed,
}

// ranges are those of the whole numbers that are no safe integer of JSON, by their fields.
var ranges = map[string]*rapid.Generator[int64]{
	"Dispatched.At": rapid.Int64(), "Updated.NextAt": rapid.Int64(), "Effect.Fence": rapid.Int64(), "Response.RetryAfter": rapid.Int64(),
	"Pause.For": rapid.Int64(), "Response.Began": rapid.Int64Range(0, canonical.MaxInt), "Response.Ran": rapid.Int64Range(0, canonical.MaxInt),
}

func draw(t *rapid.T, name string, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *journal.Kind:
		*x = rapid.SampledFrom(kinds).Draw(t, name)
		return
	case *journal.Mark:
		*x = rapid.SampledFrom([]journal.Mark{
			journal.MarkEntered, journal.MarkWork, journal.MarkChildren, journal.MarkAfterClose,
		}).Draw(t, name)
		return
	case *journal.Ledger:
		*x = journal.Ledger(rapid.Int64Range(0, int64(journal.MaxLedger)-1).Draw(t, name))
		return
	case *journal.Sums:
		for range rapid.IntRange(0, 3).Draw(t, name) {
			*x = x.Append(drawn[journal.Sum]().Draw(t, name))
		}
		return
	case *[]byte:
		*x = payloads().Draw(t, name)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			draw(t, v.Type().Name()+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, name) {
			v.Set(reflect.New(v.Type().Elem()))
			draw(t, name, v.Elem())
		}
	case reflect.Slice: // an empty one is left out of a body
		if n := rapid.IntRange(0, 3).Draw(t, name); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			draw(t, name, v.Index(i))
		}
	case reflect.Array:
		reflect.Copy(v, reflect.ValueOf(rapid.SliceOfN(rapid.Byte(), v.Len(), v.Len()).Draw(t, name)))
	case reflect.String:
		v.SetString(text(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	default:
		within := ranges[name]
		if within == nil {
			within = rapid.Int64Range(-canonical.MaxInt, canonical.MaxInt)
		}
		v.SetInt(within.Draw(t, name))
	}
}

func text(t *rapid.T, name string) string {
	return strings.ReplaceAll(rapid.String().Draw(t, name), "\x00", "\n")
}

// payloads draws nil or canonical user data.
func payloads() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		text := canonical.AppendString(nil, text(t, "text"))
		list := append(append([]byte("[0.5,"), text...), "]"...)
		object := append(append([]byte("{"), text...), `:{"a":[],"b":null}}`...)
		return rapid.SampledFrom([][]byte{nil, text, list, object, []byte("true"), []byte("-1.5e30")}).Draw(t, "payload")
	})
}
