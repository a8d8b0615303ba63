package collation

// An activity with `each` sends one request for every element of a list. It reads the results
// that list and inputs mention, later the held elements and the results of the ended ones. It
// decides which element goes next and what the result of the list is. It writes the requests
// and the number of open ones.

import (
	"fmt"
	"strconv"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Limits of `each`.
const (
	// MaxElementBytes bounds the inputs of all elements of one list together.
	MaxElementBytes = 32 << 20
	// MaxGathered bounds the gathered outputs of one list.
	MaxGathered = 1 << 20
)

// classTooLarge is the class of an error about a size limit.
const classTooLarge = "too_large"

// elements writes one request for each element of the list, and holds those beyond Parallel
// (1.11). An empty list is answered at once.
func (b *builder) elements(t *task) error {
	items, err := t.act.Each(t)
	inputs, size := make([][]byte, len(items)), 0
	for i := 0; i < len(items) && err == nil && size <= MaxElementBytes; i++ {
		inputs[i], err = t.act.ElementInput(t, items[i], i)
		size += len(inputs[i])
	}
	switch {
	case err != nil:
		return b.answer(t, expressionAnswer(err))
	case size > MaxElementBytes:
		message := fmt.Sprintf("the inputs of the %d elements of %s are over the limit of %d bytes together", len(items), t.act.Name, MaxElementBytes)
		return b.answer(t, errorAnswer(CodeInternal, classTooLarge, message))
	case len(items) == 0:
		return b.answer(t,
			journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: CodeOK, Output: []byte("[]")}))
	}
	if err := b.completeLeg1(t.key, More{Leg1: t.leg1, Open: len(items), Count: len(items)}); err != nil {
		return err
	}
	for i, input := range inputs {
		row, err := b.elementOrPast(t, i, input)
		if err = putOff(err); err != nil { // one trip asks for all elements
			return err
		}
		if i >= t.act.Parallel {
			row.Held, row.Publication, row.PublishedAt, row.TurnSent, row.NextAt = HeldParallel, 0, Never, 0, b.s.Now
		}
		b.insertRow(row)
	}
	b.p.Entry.Elements = &journal.Elements{Count: len(items), Parallel: min(t.act.Parallel, len(items))}
	return b.missing()
}

// elementOrPast makes the request of an element. If the element succeeded in an earlier
// generation, the row is the answer instead.
func (b *builder) elementOrPast(t *task, element int, input []byte) (Row, error) {
	row := b.element(t, element, input)
	p, err := b.past(elementKey(t.key, element))
	if p != nil {
		row.Kind, row.Body, row.WithinAt = journal.MessageAnswer, journal.EncodeResponse(p.response()), Never
	}
	return row, err
}

// unknownSize stands for the size of an output that is stored beside its entry (E6), and so is
// larger than what a message may carry.
const unknownSize = 256 << 10

// elementEnds counts one element less as open. The last one gathers the results and ends the
// activity; every other one releases the next held element (1.11).
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

// ahead is how many held elements are loaded at once: further answers in the same batch release
// the next ones.
const loadedAhead = 32

// release sends a held element. Nothing is to be released if it was ended or answered while it
// was held, or if this very message ends it.
func (b *builder) release(inst *Instance, next int) error {
	g := RequestGUID(inst.Leg1, next)
	if g == b.m.Row {
		return nil
	}
	row, err := b.stands(RowKey{b.m.Job, g})
	if err != nil {
		for i := next + 1; i < min(next+loadedAhead, inst.Count); i++ {
			_, _ = b.stands(RowKey{b.m.Job, RequestGUID(inst.Leg1, i)})
		}
		return err
	}
	if row == nil || row.Held != HeldParallel {
		return nil
	}
	free := *row
	free.Held = ""
	free.published(b.s.Now, &b.mode)
	if free.Kind == journal.MessageAnswer {
		b.p.Released = append(b.p.Released, g)
	}
	b.change(free, true)
	return nil
}

// gather makes the activity's result of its elements' results, in order: a list of outputs, or
// the error of the first that failed; with Collect a list of both.
func (b *builder) gather(inst *Instance) (*journal.Result, error) {
	if inst.Size > MaxGathered {
		return tooLarge(inst.Size, b.act.Name), nil
	}
	results := make([]*flow.Result, inst.Count)
	for i := range results {
		// This message's step 1 may be in this plan: the store cannot give its result before the
		// commit. With an output beside its entry it has committed apart.
		if i == b.response.Element && b.response.Ref.IsZero() {
			results[i] = responseResult(b.response)
			continue
		}
		results[i], _ = b.load(elementKey(b.key, i)) // a need is put off: one trip loads all
	}
	if err := b.missing(); err != nil {
		return nil, err
	}
	text := []byte{'['}
	for i, r := range results {
		if r.Code != CodeOK && !b.act.Collect {
			f := FailureOf(r.Error)
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

// elementKey names the result of one element.
func elementKey(key InstanceKey, element int) InstanceKey {
	return InstanceKey{fmt.Sprintf("%s[%d]", key.Activity, element), key.DAD}
}
