// Package engine is the loop: fetch messages, load what they meet, step,
// chain, commit, publish, ack; and the sweeper that sends what is due.
//
// A process has one Committer (W3). Its loops each own a database connection and
// several lanes. A loop takes what its lanes hold and what callers of the process ask
// for, up to a batch, and carries it in one transaction of two round trips (J6); one
// that is wholly made of starts takes one (W9). After the commit it publishes the rows
// that the plans inserted, answers the callers, then acks (T2, T3). Nothing is
// concluded from an ack or a PubAck: a message that comes again meets its digits
// (C5), a row whose message was lost is sent again.
//
// A batch waits for nobody's lock. What another transaction holds, a caller's own
// perhaps, is carried aside, by itself, on a connection that waits.
//
// Signals belong to no job, so that they have no part in a job's transaction: a loop
// carries those of a batch together, each under the lock of its mailbox. A start whose job is not there
// may be the order of a child: the flow, the input and the key are checked as for
// any start, and the child begins in the same batch, or its await is answered with why
// not.
//
// Beside the committers run the sweeper, which sends timers, retries and what was
// lost, and upkeep that nobody waits for. Retain, which removes expired jobs, is
// a loop of its own, since it needs rights that an engine does not.
//
// Waiters are the clients' side: they sleep until an engine tells them, after its
// commit, that a job has ended (W5).
//
// Any number of engines may share a space; none needs to be the only one (T8).
package engine
