// Package sim is the deterministic simulator: engines, committers, sweepers,
// workers, handlers and clients, the real code, over the store and the bus in
// memory, in one bubble of time, under every fault that makes sense there (6.3,
// 6.4). It has no code of its own outside of tests.
//
// One number, the seed, decides everything: the flows, the jobs, the settings of
// the processes, the order in which calls take effect, and what befalls them. The
// scheduler of Go decides nothing, because whatever could be seen from outside a
// goroutine goes through a gate: every call of the store, of the bus and of a
// delivery, and every body of a handler, says what it is and waits. When all
// goroutines wait, the simulator lets one call through, which the seed picks, and
// says how it ends: done, not done, done and reported as failed, failed because its
// process died before or after it. Only when no call waits does time pass.
//
// Beside what all worlds have, a seed may draw a bank of Tx effects with follow-ups,
// verifiers, jobs that expire and whose keys are used again, payloads that are too
// large for a message, partitions, storms of one message, flurries of signals to one
// hook, an outside whose answers get lost, flipped bits, all limits at their minimum. So
// each world stays small, and they meet in many ways.
//
// Processes with handlers keep sessions (W8), with package session: one that died, or
// stands still for long, is declared dead by those that live, and what it held is free.
//
// A run has two phases. In the first the faults are on, and after every commit
// what can be seen of the jobs at any time is held to the invariants (I2, I4, I5,
// I6, I10, I13), and every ack to what stands of its message (I8). In the second
// they are off, all processes run, and every job has to end within a stated time
// (I11). Then every journal is verified against its tables (I3, I7), what the
// outside received against what was recorded (I1), and what follows Tx effects
// against the committed runs of their bodies (P24, P25).
//
//	go test ./engine/sim                                  a thousand seeds
//	go test ./engine/sim -run TestSimulation -v -seed=N   one seed; says where its log is
//	make sim                                              an hour of them
//
// A failure prints the second line, and the directory with the log of the calls and
// the export of the journals.
package sim
