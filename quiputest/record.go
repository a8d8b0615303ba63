package quiputest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/replay"
)

// record is one job, read from its exported entries.
type record struct {
	header  export.Header
	entries []*journal.Entry                  // of the main chain
	chains  map[journal.GUID][]*journal.Entry // of effects, by request
	job     *replay.Job
	flow    *flow.Flow
}

// readRecord reads the entries of a job and checks the laws that entries alone can prove.
func readRecord(h export.Header, entries iter.Seq2[journal.Record, error]) (*record, error) {
	header := replay.Header{
		Space: h.Space, Job: h.Job, Key: h.Key, Generation: h.Generation, Head: h.Head, Flow: h.Flow,
	}
	r := &record{header: h, chains: map[journal.GUID][]*journal.Entry{}, job: replay.New(header)}
	var all []journal.Record
	for rec, err := range entries {
		if err != nil {
			return nil, err
		}
		all = append(all, rec)
	}
	report, err := replay.Verify(header, nil, nil, func(yield func(journal.Record, error) bool) {
		for _, rec := range all {
			if !yield(rec, nil) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case report.Violated():
		return nil, fmt.Errorf("its journal is not as it was written: %s", report.First)
	}
	for _, rec := range all {
		e, err := journal.Decode(rec)
		if err != nil {
			return nil, err
		}
		if err := r.job.Apply(rec); err != nil {
			return nil, err
		}
		if e.Chain.IsZero() {
			r.entries = append(r.entries, e)
		} else {
			r.chains[e.Chain] = append(r.chains[e.Chain], e)
		}
	}
	if len(r.entries) == 0 {
		return nil, errors.New("it has no entries")
	}
	return r, nil
}

// asked is a request with its record.
type asked struct {
	work.ReplayRequest
	// answer is the worker's response that ended the request; nil if it did not end or somebody
	// else ended it.
	answer *journal.Response
}

// requests returns the requests of the topics, in the order of the flow.
func (r *record) requests(topics []string) ([]*asked, error) {
	var out []*asked
	keys := slices.SortedFunc(maps.Keys(r.job.Instances), func(a, b collation.InstanceKey) int {
		return cmp.Or(cmp.Compare(a.Activity, b.Activity), a.DAD.Compare(b.DAD))
	})
	for _, act := range r.flow.Activities() {
		if act.Type != flow.TypeWorker || !slices.Contains(topics, act.Topic) {
			continue
		}
		for _, key := range keys {
			if key.Activity != act.Name || !r.job.Instances[key].Ledger.Leg1Complete() {
				continue
			}
			of, err := r.asked(act, key)
			if err != nil {
				return nil, fmt.Errorf("%s at %s: %w", act.Name, key.DAD, err)
			}
			out = append(out, of...)
		}
	}
	return out, nil
}

// asked returns the requests of one instance. Their inputs follow from what was recorded before
// it.
func (r *record) asked(act *flow.Activity, key collation.InstanceKey) ([]*asked, error) {
	inputs, err := r.inputs(act, key.DAD)
	var failed *flow.EvalError
	if errors.As(err, &failed) {
		return nil, nil // that error was its answer; there was no request
	}
	if err != nil {
		return nil, err
	}
	h, leg1 := &r.header, r.job.Instances[key].Leg1
	out := make([]*asked, len(inputs))
	for i, input := range inputs {
		request := collation.RequestGUID(leg1, i)
		pauses, err := r.pauses(request)
		if err != nil {
			return nil, err
		}
		a := &asked{ReplayRequest: work.ReplayRequest{
			Effects: r.effects(request), Pauses: pauses,
			Request: wire.Request{
				Space: h.Space, Job: h.Job.String(), Key: h.Key, Generation: h.Generation, Flow: r.flow.Name(),
				Version:  r.flow.Version(),
				Activity: act.Name, DAD: string(key.DAD), Element: i, Topic: act.Topic, Request: request.String(),
				Attempts: act.Retry.Attempts, TimeoutMS: act.Timeout.Milliseconds(), Input: input,
			},
		}}
		if from := r.job.From; from != nil && !from.Forks() {
			a.Request.Root, a.Request.RootGeneration = from.Root.String(), from.RootGeneration
		}
		a.answer, a.Request.Turn, a.Request.Attempt = r.turns(request)
		out[i] = a
	}
	return out, nil
}

// inputs returns the inputs of an instance's requests: one, or one for each element.
func (r *record) inputs(act *flow.Activity, dad collation.DAD) ([]json.RawMessage, error) {
	s := &scope{record: r, reader: act, dad: dad, budget: flow.NewBudget(nil)}
	if !act.HasEach {
		input, err := act.Input(s)
		return []json.RawMessage{input}, errors.Join(err, s.err)
	}
	items, err := act.Each(s)
	if err != nil {
		return nil, errors.Join(err, s.err)
	}
	out := make([]json.RawMessage, len(items))
	for i, item := range items {
		input, err := act.ElementInput(s, item, i)
		if err != nil {
			return nil, errors.Join(err, s.err)
		}
		out[i] = input
	}
	return out, s.err
}

// scope is what the expressions of an instance see. What was recorded before the instance does
// not change.
type scope struct {
	*record
	reader *flow.Activity
	dad    collation.DAD
	budget *flow.Budget
	err    error
}

// Result implements flow.Scope.
func (s *scope) Result(name string) (flow.Result, bool) {
	act, ok := s.flow.Activity(name)
	if !ok {
		return flow.Result{}, false
	}
	key := collation.AddressOf(act, s.reader, s.dad)
	seq := int64(0)
	if i := s.job.Instances[key]; i != nil {
		seq = i.ResultSeq
	} else if p := s.job.Passes[key]; p != nil {
		seq = p.ResultSeq
	}
	if seq == 0 {
		return flow.Result{}, true
	}
	e := s.entries[seq-1]
	if x := e.Response; x != nil && !x.Ref.IsZero() && e.Result == nil {
		s.err = beside(name)
	}
	return *collation.ResultAt(e, key), true
}

// Budget implements flow.Scope.
func (s *scope) Budget() *flow.Budget { return s.budget }

// Job implements flow.Scope.
func (s *scope) Job() flow.JobInfo {
	return flow.JobInfo{ID: s.header.Key, Flow: s.flow.Name(), Version: s.flow.Version(), StartedMicros: s.job.Started}
}

// effects lists the recorded effects of a request, in the order of their first entries.
func (r *record) effects(request journal.GUID) []store.EffectRow {
	var rows []store.EffectRow
	for _, e := range r.chains[request] {
		f := e.Effect
		if f == nil {
			continue
		}
		at := slices.IndexFunc(rows, func(row store.EffectRow) bool { return row.Key == f.Key })
		if at < 0 {
			at = len(rows)
			rows = append(rows, store.EffectRow{Key: f.Key, Name: f.Name, Class: f.Class, N: f.N, Position: f.Position})
		}
		row := &rows[at]
		row.Fence, row.Holder, row.Result, row.Error = f.Fence, e.Writer, f.Result, f.Error
		switch e.Kind {
		case journal.KindEffectStarted:
			row.State = store.EffectStarted
		case journal.KindEffectCompleted:
			row.State = store.EffectCompleted
		case journal.KindEffectFailed:
			row.State = store.EffectNotDone
		}
	}
	return rows
}

// pauses lists the resolved waits of a function, in the order of the entries, then its open ones.
func (r *record) pauses(request journal.GUID) (came []store.Pause, err error) {
	var named []journal.Pause
	for _, e := range r.entries {
		x := e.Response
		switch {
		case x == nil || x.Request != request:
		case x.Kind == journal.ResponseWake && x.Of != nil:
			if !x.Ref.IsZero() && x.Output == nil {
				return nil, beside(x.Of.Name)
			}
			came = append(came, store.Pause{PauseRef: *x.Of, Seq: e.Seq, Response: x})
		case x.Kind == journal.ResponseSuspended:
			named = x.Pauses
		}
	}
	for i := range named {
		known := func(p store.Pause) bool { return p.PauseRef == named[i].PauseRef }
		if !slices.ContainsFunc(came, known) {
			came = append(came, store.Pause{PauseRef: named[i].PauseRef})
		}
	}
	return came, nil
}

// beside is the error for an output of which an export has only the digest (E6).
func beside(name string) error {
	return fmt.Errorf("the output of %s is stored beside the journal, and no export has it", name)
}

// turns returns how far a request came: the worker's response that ended it, or the next turn and
// attempt.
func (r *record) turns(request journal.GUID) (answer *journal.Response, turn, attempt int) {
	turn, attempt = 1, 1
	answered := false // by somebody else
	for _, e := range r.entries {
		for i := range e.Updated {
			if u := &e.Updated[i]; u.GUID == request && u.Kind == journal.MessageAnswer && e.Response == nil {
				answered = true
			}
		}
		x := e.Response
		if x == nil || x.Request != request || x.Kind == journal.ResponseWake {
			continue
		}
		turn = x.Turn
		switch x.Kind {
		case journal.ResponseTerminal:
			if !answered {
				answer = x
			}
			return answer, turn, attempt
		case journal.ResponseFailedAttempt:
			attempt++
		}
		turn++
	}
	return nil, turn, attempt
}
