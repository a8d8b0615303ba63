// Package nats carries a space's messages over NATS JetStream. Apart from the embedded
// server in dev, only this package knows nats.go.
//
// The way in is Open with a Config. It returns a
// transport.Bus.
//
// # Streams (T5)
//
// A space has three streams, all with work-queue retention, file storage,
// DiscardNew under a byte limit and a duplicate window of two minutes:
//
//	QUIPU_<space>_LANES   quipu.<space>.lane.<n>      one durable consumer per lane
//	QUIPU_<space>_START   quipu.<space>.start         one durable consumer
//	QUIPU_<space>_WORK    quipu.<space>.work.<topic>  one durable consumer per topic
//
// Ensure makes them, and every consumer loop makes them again after a loss. They may be
// deleted, purged or lost at any time: the dispatch rows send open messages again (T1).
// Config.Prefix may give "quipu" another name.
//
// A stream or consumer that is there is an operator's as much as ours (S5). It gets what
// Config asks for and it has less of; it keeps everything else. One that breaks the promise
// is refused, with both values (raise.go).
//
// # Consuming
//
// A Consume call keeps pull requests open for exactly its free slots: slots = unfinished
// deliveries + requested messages. The goroutine that finishes a delivery requests the
// next message for the slot at once, so that single messages need no hand-over between
// goroutines; under load, requests are grouped to half the slots. The package speaks the
// pull protocol directly (consumer MSG.NEXT with expiry and idle heartbeats), because the
// client library's iterators free a slot when a message is read, not when it is finished.
//
// A binding (one inbox and its pull requests) ends with the connection, with a 409 or 503
// status, or when heartbeats stop. The loop then ensures stream and consumer and binds
// again, with backoff and jitter.
//
// # Lanes (7.6)
//
// The consumer of a lane has JetStream's policy pinned_client: one of the pulling
// processes gets all messages as long as it pulls again within Config.Pin. So the
// messages of one job meet in one process, where they share commits and hot states. All
// engines pull from all lanes. An engine with more than its share gives lanes up for a
// second or two, in which others take them; an engine that drains gives up its own.
// Messages of one job in several processes are slower but just as correct (C3).
//
// A server that stops between an ack and the removal of its message may keep the message
// below the ack floor of its consumer, where it is never delivered. The next binding
// removes it, and Oldest ignores it.
//
// # Publishing
//
// Messages go out without waiting; one inbox collects the PubAcks. The number in flight
// is bounded. If a PubAck is late, or the connection breaks, the outcome is
// ErrUnavailable: the message may have arrived or not.
//
// # Telling (W5)
//
// The end of a job is told by a message outside the streams, on
// quipu.<space>.ended.<job>. Each listener subscribes to its one job; without a
// subscription the server drops the message.
package nats
