package quiputest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
)

// outcome is the result of one run of a scenario.
type outcome struct {
	jobs      map[string]ending         // by name
	receivers map[string]map[string]int // what each did, and how often
	letters   []string                  // open dead letters
}

// ending is the result of one job. Ignored members of payloads are not compared.
type ending struct {
	state   string
	output  json.RawMessage
	effects map[string][]result // by place and name
}

// result is the recorded result of an effect.
type result struct {
	state  string
	output json.RawMessage
}

// outcome collects the results of the run, without those of losing branches.
func (w *World) outcome() *outcome {
	w.t.Helper()
	o := &outcome{jobs: map[string]ending{}, receivers: map[string]map[string]int{}}
	won, lost := w.winners(), map[string]bool{}
	for _, j := range w.Jobs() {
		v := j.view()
		all := j.effects()
		e := ending{state: endOf(v), output: v.Output, effects: map[string][]result{}}
		for i := range all {
			f := &all[i]
			request := f.Request
			if original := undone(v); !original.IsZero() {
				request = original
			}
			switch {
			case won.lost(request, f.Position):
				lost[f.EffectRow.Key.String()] = true
			case strings.HasPrefix(f.Name, versionPrefix): // recorded in the branch that came first
			case f.State != store.EffectNotDone: // one that was not done is tried again
				place := fmt.Sprintf("%s at %s %s, effect %q", f.Activity, f.DAD, f.Position, f.Name)
				e.effects[place] = append(e.effects[place], resultOf(&f.EffectRow))
			}
		}
		if w.lostJob(won, v) {
			continue
		}
		name := w.nameOf(j.ID)
		// a function may start several, or a key was used again
		for _, again := o.jobs[name]; again; _, again = o.jobs[name] {
			name += "'"
		}
		o.jobs[name] = e
	}
	w.mu.Lock()
	receivers := maps.Clone(w.receivers)
	w.mu.Unlock()
	for name, r := range receivers {
		o.receivers[name] = r.did(lost)
	}
	for _, d := range w.DeadLetters() {
		o.letters = append(o.letters, fmt.Sprintf("job %q, %s: %s", d.Key, d.Activity, d.Reason))
	}
	slices.Sort(o.letters)
	return o
}

// versionPrefix begins the names of the records of workers.Version.
const versionPrefix = "version:"

// endOf returns how a job ended, or its state.
func endOf(v *store.JobView) string {
	state := string(v.State)
	if v.State.Closed() {
		state = fmt.Sprintf("%s with code %d", v.State, v.Code)
	}
	if v.Error != nil {
		state += fmt.Sprintf(" (%s): %s", v.Error.Class, v.Error.Message)
	}
	return state
}

// resultOf returns what must be the same of an effect. The result of a Pure one, for example a
// time, may differ; its effect shows in the job's output.
func resultOf(f *store.EffectRow) result {
	r := result{state: f.Class + ", " + string(f.State)}
	if f.Class != string(effects.Pure) {
		r.output = f.Result
	}
	if f.Error != nil {
		r.state += fmt.Sprintf(" with error (%s): %s", f.Error.Class, f.Error.Message)
	}
	return r
}

// differences lists in what another run differs from this undisturbed one.
func (o *outcome) differences(other *outcome, ignored []string) (out []string) {
	d := differ{ignored: ignored}
	d.strings("jobs", keys(o.jobs), keys(other.jobs))
	for _, key := range keys(o.jobs) {
		a := o.jobs[key]
		b, there := other.jobs[key]
		if !there {
			continue
		}
		job := fmt.Sprintf("job %q: ", key)
		d.text(job+"it", a.state, b.state)
		d.text(job+"its output", d.payload(a.output), d.payload(b.output))
		d.strings(job+"its effects", keys(a.effects), keys(b.effects))
		for _, place := range keys(a.effects) {
			if len(b.effects[place]) > 0 {
				d.strings(job+place, d.results(a.effects[place]), d.results(b.effects[place]))
			}
		}
	}
	for _, name := range keys(o.receivers) {
		d.text("receiver "+name+" did", counts(o.receivers[name]), counts(other.receivers[name]))
	}
	d.strings("open dead letters", o.letters, other.letters)
	return d.lines
}

// differ collects differences.
type differ struct {
	ignored []string
	lines   []string
}

func (d *differ) text(what, calm, died string) {
	if calm != died {
		d.lines = append(d.lines, fmt.Sprintf("%s: %s\n  undisturbed: %s", what, died, calm))
	}
}

func (d *differ) strings(what string, calm, died []string) {
	d.text(what, strings.Join(calm, "; "), strings.Join(died, "; "))
}

func (d *differ) results(rs []result) []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = strings.TrimSpace(r.state + " " + d.payload(r.output))
	}
	slices.Sort(out)
	return out
}

// payload returns a payload without ignored members.
func (d *differ) payload(raw json.RawMessage) string {
	if len(raw) == 0 || len(d.ignored) == 0 {
		return string(raw)
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return string(raw)
	}
	cut, err := json.Marshal(d.cut(v))
	if err != nil {
		return string(raw)
	}
	return string(cut)
}

func (d *differ) cut(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if slices.Contains(d.ignored, name) {
				delete(v, name)
			} else {
				v[name] = d.cut(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = d.cut(v[i])
		}
	}
	return v
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// counts lists what was done and how often, the most frequent first.
func counts(did map[string]int) string {
	names := slices.SortedFunc(maps.Keys(did), func(a, b string) int {
		return cmp.Or(cmp.Compare(did[b], did[a]), cmp.Compare(a, b))
	})
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("%s %d times", shortened(name), did[name])
	}
	return strings.Join(out, ", ")
}
