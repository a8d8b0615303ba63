package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// outside is the script from outside: it sends the signals that keys ask for,
// and in the end interrupts what would sleep on.
type outside struct {
	sent  int                        // signals
	early map[string]int             // passes that were sent before they were waited for, by key
	seen  map[journal.GUID]time.Time // when a wait is to be served
	shot  map[journal.JobID]bool     // interrupted
}

func (o *outside) init() {
	o.early, o.seen, o.shot = map[string]int{}, map[journal.GUID]time.Time{}, map[journal.JobID]bool{}
}

// send sends one signal, and now and then again: a duplicate changes nothing.
func (w *world) send(key string, code, pass int, all bool) store.Signalled {
	w.sent++
	topic := topicOf(key)
	s := &collation.Signal{
		GUID: collation.SignalGUID(space, topic, key, fmt.Sprint(w.sent)), Topic: topic, Key: key,
		Code: code, Payload: json.RawMessage(spell(payloadOf(key, pass))), All: all,
	}
	out := w.signal(s)
	if w.dice.IntN(3) == 0 {
		if again := w.signal(s); !again.Duplicate || again.State != out.State {
			w.wrong("signal %d of %s came twice: first %+v, then %+v", w.sent, key, out, again)
		}
	}
	return out
}

func (w *world) signal(s *collation.Signal) store.Signalled {
	return must(func() (store.Signalled, error) {
		return journaltest.Driven{Store: w.store}.Signal(context.Background(), s, collation.Mode{})
	})
}

// sendEarly sends some of the signals that the jobs will wait for.
func (w *world) sendEarly() {
	for _, o := range w.plan.outcomes {
		for _, key := range sorted(o.waits) {
			r, _ := ruleOf(key)
			switch {
			case !r.fed || w.dice.IntN(3) > 0:
			case r.passes == 0:
				w.send(key, r.code, 0, false)
			case o.waits[key] == 1: // a second wait might get what is meant for the first
				w.early[key] = 1 + w.dice.IntN(r.passes)
				for n := range w.early[key] {
					w.send(key, collation.CodePass, n+1, false)
				}
			}
		}
	}
}

// feed serves the oldest wait of each key, as its rule says, some time after it
// was seen first.
func (w *world) feed(views []*store.JobView) {
	oldest := map[string]*collation.Wait{}
	several := map[string]bool{}
	for _, v := range views {
		for i := range v.Waits {
			x := &v.Waits[i]
			y := oldest[x.Key]
			several[x.Key] = y != nil
			if y == nil || cmp.Or(cmp.Compare(x.Since, y.Since), bytes.Compare(x.GUID[:], y.GUID[:])) < 0 {
				oldest[x.Key] = x
			}
		}
	}
	for _, key := range sorted(oldest) {
		x := oldest[key]
		r, _ := ruleOf(key)
		if _, ok := w.seen[x.GUID]; !ok {
			w.seen[x.GUID] = time.Now().Add(time.Duration(w.dice.IntN(1500)) * time.Millisecond)
		}
		switch {
		case !r.fed || time.Now().Before(w.seen[x.GUID]):
		case x.Count < w.early[key]: // they are on their way
		case x.Count < r.passes:
			w.send(key, collation.CodePass, x.Count+1, !several[key] && w.dice.IntN(4) == 0)
		default: // to all of them, unless others are still to make passes
			w.send(key, r.code, 0, (r.passes == 0 || !several[key]) && w.dice.IntN(4) == 0)
		}
	}
}

// sleepers are the flows whose jobs end only when they are interrupted.
var sleepers = []string{"napper", "boss", "watcher"}

// wakeSleepers interrupts what is left when only sleepers are.
func (w *world) wakeSleepers(views []*store.JobView) {
	for _, v := range views {
		if !v.Ended && !slices.Contains(sleepers, v.Flow.Name) {
			return
		}
	}
	for _, v := range views {
		onItsWay := slices.ContainsFunc(v.Rows, func(r collation.Row) bool {
			return r.Kind == journal.MessageInterrupt
		})
		if v.State != journal.JobOpen || w.shot[v.ID] || onItsWay {
			continue
		}
		w.shot[v.ID] = true
		w.interrupt(v.ID)
	}
}

// interrupt interrupts a job from outside.
func (w *world) interrupt(id journal.JobID) {
	order := collation.InterruptOrder{Code: 555, Reason: "enough", Throw: true, From: "outside"}
	row, err := order.Row(collation.AskedInterruptGUID("enough", id), id, collation.Micros(time.Now().UnixMicro()))
	if err != nil {
		panic(err)
	}
	must(func() (bool, error) {
		return journaltest.Driven{Store: w.store}.Interrupt(context.Background(), row, collation.Mode{})
	})
}
