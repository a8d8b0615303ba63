// Package engine is the loop: fetch messages, load what they meet, step,
// chain, commit, publish, ack; and the sweeper that sends what is due.
//
// A committer owns one database connection and several lanes. It takes what
// its lanes hold, up to a batch, and carries it in one transaction of two
// round trips (J6). After the commit it publishes the rows that the plans
// inserted, then acks (T2, T3). Nothing is concluded from an ack or a PubAck:
// a message that comes again meets its digits (C5), a row whose message was
// lost is sent again.
//
// Any number of engines may share a space; none needs to be the only one (T8).
package engine
