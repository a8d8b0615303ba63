// Package transport is the port between the engine and the bus that carries its messages:
// the message, its headers, and the Bus.
//
// A message is a hint that work may exist (4.1). Only its dispatch row in the journal's
// store counts. The bus may lose everything, or deliver everything twice and in any
// order; still nothing is lost and nothing is recorded twice. So neither this package nor
// a caller may conclude anything from a PubAck, an ack, a dedup reply, an empty stream or
// a delivery count.
//
// The way in is Bus. Two implementations pass the suite in internal/testkit/transporttest:
// transport/nats (JetStream) and internal/membus (for the simulator: seeded, and able to
// lose, duplicate and reorder). Package internal/local decorates either.
//
// # Destinations
//
// A Destination is a lane (both legs, wake-ups and outcomes of the jobs hashed to it),
// the start queue (new jobs), or a worker topic (T5). Each is a work queue: a message
// stays until Ack or Term finishes it.
//
// # Delivering
//
// Consume only pulls. It never holds more unfinished deliveries than the caller has slots
// (T5), so memory stays flat whatever the backlog (T11). Exactly one call finishes a
// delivery (T3): Ack after the commit, Nak with a delay after infrastructure trouble, or
// Term for poison, after its dead letter is committed. An unfinished message comes again
// after the ack wait, with a higher count, if a slot is free.
//
// # Telling
//
// Tell and Listen report, outside all streams, that a job has ended (W5). A waiter only
// learns of it sooner; nothing else depends on them.
//
// # Wire form
//
// The header names below are the documented wire contract (T6, T7), for workers in any
// language. EncodeHeader and DecodeHeader are the only code that spells them.
package transport
