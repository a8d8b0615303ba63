// Package effects runs what a handler does outside under a name, so that it is done once
// however often the handler runs (spec 3.1).
//
//	receipt, err := effects.Do(ctx, "charge", func(ctx context.Context) (Receipt, error) {
//		return provider.Charge(ctx, amount, effects.Key(ctx))
//	}, effects.Idempotent)
//
// The name, the place in the job and the explicit key or arguments give a key (E1). The
// result of fn is journaled under that key; a second run of the handler gets it, and fn
// is not called. Before a call outside, its start is committed alone (E4). So after a
// crash it is known that the outside may have been reached, and the class says what
// follows: Pure and Idempotent run again, Guarded does not run again by itself. SQL in
// the journal's own database is of class Tx (quipu.DoTx): it commits with its result.
//
// Outside a job Do calls fn and nothing else (E14): a handler is tested like any
// function. In a job the run of the handler, which Do finds in ctx, carries the call out.
package effects
