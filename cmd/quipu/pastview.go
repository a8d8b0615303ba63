package main

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/look"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// past is a job at an entry of its journal, as replay prints it in JSON.
type past struct {
	Key         string       `json:"key"`
	Job         string       `json:"job"`
	Flow        string       `json:"flow"`
	Version     string       `json:"version"`
	At          int64        `json:"at"`
	Kind        string       `json:"kind"` // of the entry
	Time        *time.Time   `json:"time"`
	State       string       `json:"state"`
	Semaphore   int64        `json:"semaphore"`
	Instances   []instance   `json:"instances"`
	Obligations []obligation `json:"obligations"`
	Rows        []pastRow    `json:"rows"`
	Waits       []wait       `json:"waits"`
	Children    []child      `json:"children"`
	Pauses      []pause      `json:"pauses"`
}

// pause is a wait of a durable function, open or over.
type pause struct {
	Kind     string     `json:"kind"`
	Name     string     `json:"name"`
	Position string     `json:"position"`
	Activity string     `json:"activity"`
	DAD      string     `json:"dad"`
	Waits    bool       `json:"waits"` // the function still waits for it
	Due      *time.Time `json:"due,omitempty"`
	Since    int64      `json:"since"`          // number of the entry
	Came     int64      `json:"came,omitempty"` // number of the entry
}

type obligation struct {
	Activity string `json:"activity"`
	DAD      string `json:"dad"`
	Since    int64  `json:"since"`
}

type pastRow struct {
	Kind     string     `json:"kind"`
	Activity string     `json:"activity"`
	DAD      string     `json:"dad"`
	Topic    string     `json:"topic,omitempty"`
	Element  int        `json:"element,omitempty"`
	Turn     int        `json:"turn"`
	Attempt  int        `json:"attempt"`
	Next     *time.Time `json:"next,omitempty"`
	Held     string     `json:"held,omitempty"`
	Since    int64      `json:"since"`
}

type child struct {
	Job      string     `json:"job"`
	Activity string     `json:"activity"`
	DAD      string     `json:"dad"`
	Turn     int        `json:"turn"`
	Starts   *time.Time `json:"starts,omitempty"`
	Since    int64      `json:"since"`
}

func pastOf(j *replay.Job, e *journal.Entry) past {
	p := past{
		Key: j.Header.Key, Job: j.Header.Job.String(), Flow: j.Flow.Name, Version: j.Flow.Version,
		At: e.Seq, Kind: string(e.Kind), Time: stamp(collation.Micros(e.Time)), State: string(j.State),
		Semaphore: j.Semaphore,
		Instances: pastInstances(j), Obligations: []obligation{}, Rows: []pastRow{}, Waits: []wait{},
		Children: []child{}, Pauses: []pause{},
	}
	for _, o := range oldest(j.Obligations, func(o replay.Obligation) (int64, string) {
		return o.Since, o.Activity + string(o.DAD)
	}) {
		p.Obligations = append(p.Obligations, obligation{o.Activity, string(o.DAD), o.Since})
	}
	for _, r := range oldest(j.Rows, func(r *replay.Row) (int64, string) {
		return r.Origin, r.Activity + string(r.DAD)
	}) {
		p.Rows = append(p.Rows, pastRow{
			Kind: string(r.Kind), Activity: r.Activity, DAD: string(r.DAD), Topic: r.Topic, Element: r.Element,
			Turn: r.Turn, Attempt: r.Attempt, Next: stamp(collation.Micros(r.NextAt)), Held: r.Held, Since: r.Origin,
		})
	}
	for _, w := range oldest(j.Waits, func(w *replay.Wait) (int64, string) {
		return w.Origin, w.Activity + string(w.DAD)
	}) {
		p.Waits = append(p.Waits, wait{
			Activity: w.Activity, DAD: string(w.DAD), Topic: w.Topic, Key: w.Key, Repeat: w.Repeat, Signals: w.Passed,
			SinceEntry: w.Origin,
		})
	}
	for _, c := range oldest(j.Children, func(c *replay.Child) (int64, string) {
		return c.Origin, c.Activity + string(c.DAD)
	}) {
		p.Children = append(p.Children,
			child{c.Job.String(), c.Activity, string(c.DAD), c.Turn, stamp(collation.Micros(c.At)), c.Origin})
	}
	for _, x := range oldest(j.Pauses, func(x *replay.Pause) (int64, string) { return x.Since, x.Position + x.Name }) {
		p.Pauses = append(p.Pauses, pause{
			Kind: string(x.Kind), Name: x.Name, Position: x.Position, Activity: x.Activity, DAD: string(x.DAD),
			Waits: x.Named, Due: stamp(collation.Micros(x.Due)), Since: x.Since, Came: x.Taken,
		})
	}
	return p
}

func pastInstances(j *replay.Job) []instance {
	out := make([]instance, 0, len(j.Instances))
	for _, i := range look.Instances(j) {
		out = append(out, instanceOf(i.Key, &i.Instance))
	}
	return out
}

// oldest returns the values in the order of the entries that made them, then by name.
func oldest[V any](all map[journal.GUID]V, by func(V) (int64, string)) []V {
	return slices.SortedFunc(maps.Values(all), func(x, y V) int {
		n, a := by(x)
		m, b := by(y)
		return cmp.Or(cmp.Compare(n, m), cmp.Compare(a, b))
	})
}
