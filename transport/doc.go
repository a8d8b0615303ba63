// Package transport is the port between the engine and whatever carries its
// messages: the message, its headers, and the Bus.
//
// A message is a hint that work may exist (4.1). The dispatch row in the
// journal's store is what makes it count; the bus may lose everything,
// deliver everything twice and in any order, and nothing is lost and nothing is
// recorded twice. So nothing here draws a conclusion from a PubAck, an ack, a
// dedup reply, an empty stream or a delivery count, and neither may a caller.
//
// The way in is Bus. Two implementations pass the suite in
// transport/transporttest: transport/nats (JetStream) and transport/memory
// (seeded, lossy, duplicating, reordering, for the simulator).
//
// # Destinations
//
// A Destination is a lane (both legs, wake-ups and outcomes of the jobs hashed
// to it), the start queue (new jobs), or a worker topic (T5). Within each the
// bus keeps work-queue retention: a message stays until it is finished by Ack
// or Term, and only then is it gone.
//
// # Delivering
//
// Consume pulls only; it never holds more unfinished deliveries than the
// caller has slots (T5), so memory stays flat whatever the backlog (T11). A
// delivery is finished by exactly one of Ack (after the commit), Nak with a
// delay (infrastructure trouble) or Term (poison, after the dead letter is
// committed), T3. A message whose delivery is not finished comes again after the
// ack wait, with a higher count, if a slot is free.
//
// # Telling
//
// Tell and Listen carry that a job has ended, past all streams, to who waits for it
// (W5). Nothing depends on it but how soon he looks.
//
// # Wire form
//
// The header names below are the documented wire contract (T6, T7); a worker in
// any language can read and write them. EncodeHeader and Decode are the
// one place that spells them.
package transport
