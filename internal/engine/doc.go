// Package engine fetches messages, loads the state they need, decides, commits, publishes and
// acks. Its sweeper sends what is due.
//
// A process has one Committer (W3). Each of its loops owns a database connection and several
// lanes. A loop takes what is in its lanes and what callers of the process ask for, up to a
// batch, and carries it in one transaction of two round trips (J6); a batch of starts alone
// takes one (W9). After the commit it publishes the inserted rows, answers the callers, then
// acks (T2, T3). Nothing is concluded from an ack or a PubAck: a redelivered message finds its
// digits (C5), and the row of a lost message sends it again.
//
// A batch waits for nobody's lock. Work that needs what another transaction holds, perhaps a
// caller's, is carried aside, singly, on a connection that waits. Where a batch cannot tell what of
// it is held, each is tried singly first.
//
// Signals belong to no job and have no part in a job's transaction: a loop carries those of a
// batch together, each under the lock of its mailbox. A start without a job may be the order of
// a child. Its flow, input and key are checked like those of any start. Then the child begins
// in the same batch, or its await is answered with the reason why not.
//
// Beside the committer run the sweeper, which sends timers, retries and lost messages, and
// upkeep that nobody waits for. Retain, which removes expired jobs, is a loop of its own,
// because it needs rights that an engine does not need.
//
// Waiters are the clients' side: they sleep until an engine tells them, after its commit, that
// a job has ended (W5).
//
// Any number of engines may share a space; none needs to be the only one (T8).
package engine
