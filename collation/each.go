package collation

import (
	"fmt"
	"strconv"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// unknownSize stands for the size of an output that is stored beside its entry
// (E6): larger than what a message may carry.
const unknownSize = 256 << 10

// elementEnds takes one from the open elements. The one that brings them to 0
// ends the activity, with what was gathered; another releases the next that is
// held (1.11).
func (b *builder) elementEnds() (ended bool, err error) {
	inst, err := b.instance(b.key)
	if err != nil {
		return false, err
	}
	if inst.Count == 0 {
		return true, nil // the empty list, or an expression that failed: its answer is the result
	}
	if inst.Open <= 0 {
		return false, errBroken("an element of " + b.m.Activity + " ends after all have ended")
	}
	inst.Open--
	inst.Size += len(b.response.Output)
	if !b.response.Ref.IsZero() {
		inst.Size += unknownSize
	}
	b.put(b.key, inst)
	if inst.Open > 0 {
		next := b.act.Parallel + inst.Count - inst.Open - 1
		if next < inst.Count {
			err = b.release(&inst, next)
		}
		if err == nil {
			b.end()
		}
		return false, err
	}
	result, err := b.gather(&inst)
	if err != nil {
		return false, err
	}
	_, err = b.settle(result)
	return true, err
}

// ahead is how many held elements are loaded at once: the answers that follow in
// the same batch release the next ones.
const ahead = 32

// release sends a held element on its way. One that ended or was answered
// while it was held has nothing to be released, nor has the one that is ended by
// this very message.
func (b *builder) release(inst *Instance, next int) error {
	g := RequestGUID(inst.Leg1, next)
	if g == b.m.Row {
		return nil
	}
	row, err := b.stands(RowKey{b.m.Job, g})
	if err != nil {
		for i := next + 1; i < min(next+ahead, inst.Count); i++ {
			_, _ = b.stands(RowKey{b.m.Job, RequestGUID(inst.Leg1, i)})
		}
		return err
	}
	if row == nil || row.Held != HeldParallel {
		return nil
	}
	free := *row
	free.Held = ""
	free.published(b.s.Now, b.mode.Resend)
	b.change(free, true)
	return nil
}

// gather makes the activity's result of those of its elements, in order: a list
// of outputs, the error of the first that failed, or with Collect a list of
// both.
func (b *builder) gather(inst *Instance) (*journal.Result, error) {
	if inst.Size > MaxGathered {
		return tooLarge(inst.Size, b.act.Name), nil
	}
	results := make([]*flow.Result, inst.Count)
	for i := range results {
		// Its own step 1 may be in this plan: the store cannot give it before the
		// commit. One that is stored beside its entry has a step 1 apart.
		if i == b.response.Element && b.response.Ref.IsZero() {
			results[i] = responseResult(b.response)
			continue
		}
		results[i], _ = b.load(elementKey(b.key, i)) // all at once
	}
	if err := b.missing(); err != nil {
		return nil, err
	}
	text := []byte{'['}
	for i, r := range results {
		if r.Code != CodeOK && !b.act.Collect {
			f := failureOf(r.Error)
			f.Message = fmt.Sprintf("element %d of %s: %s", i, b.act.Name, f.Message)
			return &journal.Result{Code: r.Code, Error: f}, nil
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = b.appendElement(text, r)
	}
	if text = append(text, ']'); len(text) > MaxGathered {
		return tooLarge(len(text), b.act.Name), nil
	}
	return &journal.Result{Code: CodeOK, Output: text}, nil
}

func (b *builder) appendElement(text []byte, r *flow.Result) []byte {
	output := r.Output
	if output == nil {
		output = []byte("null")
	}
	if !b.act.Collect {
		return append(text, output...)
	}
	text = strconv.AppendInt(append(text, `{"code":`...), int64(r.Code), 10)
	if r.Error != nil {
		return append(append(append(text, `,"error":`...), r.Error...), '}')
	}
	return append(append(append(text, `,"output":`...), output...), '}')
}

func tooLarge(size int, name string) *journal.Result {
	return &journal.Result{Code: CodeInternal, Error: &journal.Failure{Class: classTooLarge, Message: fmt.Sprintf(
		"the gathered outputs of %s have %d bytes or more, the limit is %d: let the elements return less, or store it elsewhere",
		name, size, MaxGathered)}}
}
