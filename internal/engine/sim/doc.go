// Package sim is the deterministic simulator. It runs the real code (engines, committers,
// sweepers, workers, handlers, clients) over the store and the bus in memory, in one bubble of
// time, under every fault of 6.3 that makes sense there. It consists of tests only.
//
// One number, the seed, decides everything: the flows, the jobs, the settings of the processes,
// the order in which calls take effect, and their faults. Go's scheduler decides nothing, because
// everything that is visible outside a goroutine goes through a gate. Every call of the store,
// the bus or a delivery, and every body of a handler, says what it is and waits. When all
// goroutines wait, the simulator lets one call through, chosen by the seed, and decides how it
// ends: done, not done, done but reported as failed, or failed because its process died before or
// after it. Time passes only when no call waits.
//
// A seed may also draw: a bank of Tx effects with follow-ups, verifiers, forks of jobs at any of
// their entries (O12), resumed jobs, jobs that expire and whose keys are used again, payloads too
// large for a message, partitions, processes that are asked to stop while the next ones begin (T10),
// a request whose handler kills every process that runs it, until a person is asked about it (E9),
// storms of one message, flurries of signals to one hook, outside services whose answers get lost,
// flipped bits, all limits at their minimum. So each world stays small, and these features meet in many ways.
//
// Processes with handlers have sessions (W8), by package session. A process that died or hangs
// for long is declared dead by live ones, which frees what it held.
//
// A run has two phases. In the first one faults are on. After every commit the bank is counted
// (I13), after every tenth the journals of the jobs that moved are verified against their tables
// (I2–I7, I10), and every ack is checked against the state of its message (I8). In the second phase
// faults are off, all processes run, and every job must end within a stated time (I11). Then every
// journal is verified again, what the outside received against the record (I1), and the follow-ups
// of Tx effects against the committed runs of their bodies (P24, P25). Every
// process has all of its slots again (W7).
//
//	go test ./engine/sim                                  a thousand seeds
//	go test ./engine/sim -run TestSimulation -v -seed=N   one seed; says where its log is
//	make sim                                              an hour of them
//
// A failure prints the command for its seed, and the directory with the log of the calls and the
// exported journals.
package sim
