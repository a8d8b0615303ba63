package inspect

import (
	"slices"

	"github.com/quipu-journal/quipu/view"
)

// hiddenValue stands for a value that is not shown.
var hiddenValue = view.Value{Missing: "not shown to a viewer"}

// Hide returns the job without payloads, for who may not see them (O11): without inputs, outputs and
// results, and without the data and the stacks of errors. Texts of errors and sentences stay: with
// Want.Hidden these have no payload either. Nothing in the given job changes.
func Hide(j *view.Job) *view.Job {
	out := *j
	out.Hidden, out.Output, out.Error, out.Input = true, nil, HideFailure(j.Error), hideValue(j.Input)
	out.Activities = slices.Clone(j.Activities)
	for i := range out.Activities {
		a := &out.Activities[i]
		a.Input, a.Output, a.Error = hideValue(a.Input), hideValue(a.Output), HideFailure(a.Error)
	}
	out.Effects = slices.Clone(j.Effects)
	for i := range out.Effects {
		f := &out.Effects[i]
		f.Result, f.Error = hideValue(f.Result), HideFailure(f.Error)
	}
	out.Events = slices.Clone(j.Events)
	for i := range out.Events {
		e := &out.Events[i]
		e.Input, e.Output, e.Error = hideValue(e.Input), hideValue(e.Output), HideFailure(e.Error)
	}
	if j.Tree != nil {
		tree := *j.Tree
		tree.Spans = slices.Clone(tree.Spans)
		for i := range tree.Spans {
			tree.Spans[i].Failure = HideFailure(tree.Spans[i].Failure)
		}
		out.Tree = &tree
	}
	return &out
}

func hideValue(v *view.Value) *view.Value {
	if v == nil {
		return nil
	}
	return &hiddenValue
}

// HideFailure returns an error without its data and its stack.
func HideFailure(f *view.Failure) *view.Failure {
	if f == nil {
		return nil
	}
	return &view.Failure{Class: f.Class, Message: f.Message}
}
