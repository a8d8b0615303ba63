// Package linear holds rule I9 of the faults chapter: per job key, what clients
// saw of starts, signals, interrupts and reads is linearizable, and a start that
// was acknowledged exists from then on.
//
// Clients with runtimes of their own do random operations on a few keys while
// their connections are cut and delayed, engines are killed and stopped, and
// both servers are restarted. What each saw, and when, is given to porcupine
// together with a model of one key: `state` is what may be true of it, `settled`
// how engines move it on by themselves, `step` what an operation does and says.
//
// An operation of unknown outcome may take effect at any time after its call, or
// never: it is a pending effect in the state from its call on, as an interrupt
// is that no engine has taken yet. One that was refused as store.ErrUnavailable
// must have had no effect: it is left out of the history, so that whatever
// appears of it later fits nothing.
//
// QUIPU_LINEAR is how long it begins new rounds; QUIPU_LINEAR_SEED repeats the
// choices of a run.
package linear
