package quipu

import "context"

// TypedFlow is a flow with the Go types of its input and its output. It is a name with types and
// knows no runtime: keep one in a package variable.
type TypedFlow[In, Out any] struct{ name string }

// FlowOf returns the flow with that name. The types are the caller's promise: the flow's own
// schema decides whether it takes an In (ErrInput), and Wait whether its output is an Out.
func FlowOf[In, Out any](name string) TypedFlow[In, Out] { return TypedFlow[In, Out]{name} }

// Start is Runtime.Start with an input of the flow's type.
func (f TypedFlow[In, Out]) Start(ctx context.Context, rt *Runtime, key string, in In, opts ...StartOption) (Job, error) {
	return rt.Start(ctx, f.name, key, in, opts...)
}

// Wait is WaitAs with the flow's output. It does not look whether the job is one of the flow.
func (f TypedFlow[In, Out]) Wait(ctx context.Context, rt *Runtime, job Job, opts ...WaitOption) (Out, error) {
	return WaitAs[Out](ctx, rt, job, opts...)
}

// Call starts the job and waits for it: a call that is repeated with the same key and input gets
// the output of the same job. Errors are those of Start and of Wait.
func (f TypedFlow[In, Out]) Call(ctx context.Context, rt *Runtime, key string, in In, opts ...WaitOption) (Out, error) {
	job, err := f.Start(ctx, rt, key, in)
	if err != nil {
		var none Out
		return none, err
	}
	return f.Wait(ctx, rt, job, opts...)
}
