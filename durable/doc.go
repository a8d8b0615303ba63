// Package durable runs durable functions: they are run from their top for every
// answer, and what is recorded of the runs before carries them to where they were
// (spec 3.5).
//
//	f := durable.New(durable.Config{Config: effects.Config{…}})
//	err := f.Load(ctx)       // what is recorded
//	end := f.Run(ctx, fn)    // from the top, until fn returned or waits
//
// Within fn, a call is effects.Do or one of Wait, All, First, Recorded, Version and
// Compensate. Each has a position (E15), and is compared with what is recorded
// there: the first difference ends the run. A walk is one run of the function, a
// branch a line of calls in it, history the record that it is compared with. A wait
// that is not over ends the goroutine of its branch, and the run, when no branch can
// go on (E12).
//
// Package effects knows nothing of this. It asks the effects.Placer of its session,
// which is the Function, for the place of a call, and the effects.Place, which is a
// call of a branch, before it goes outside and when it comes back.
//
// Handlers use package workers, which has these calls with types.
package durable
