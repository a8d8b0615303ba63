// Package durable runs durable functions. A function runs from its top for every answer,
// and the record of the earlier runs carries it to where it was (spec 3.5).
//
//	f := durable.New(durable.Config{Config: effect.Config{…}})
//	err := f.Load(ctx)       // what is recorded
//	end := f.Run(ctx, fn)    // from the top, until fn returned or waits
//
// Within fn, a call is effects.Do or one of Wait, All, First, Recorded, Version and
// Compensate. Each call has a position (E15), and is compared with the record there; the
// first difference ends the run. A walk is one run of the function, a branch is a line of
// calls in it, and history is the record. A wait that is not over ends the goroutine of
// its branch; when no branch can go on the run ends too (E12). With Config.Stands the
// goroutine stays there if the function waits for one thing, and GoOn of the next run goes
// on with it if it may (stand).
//
// Package effect does not know this package, only the ports effect.Placer and
// effect.Place. Function implements Placer: it gives a call its place. A call of a
// branch implements Place: it is told before the call goes outside and when it comes
// back.
//
// Handlers use package workers, which has typed versions of these calls.
package durable
