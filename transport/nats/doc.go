// Package nats carries a space's messages over NATS JetStream. It is the one
// package (with the embedded server in dev) that knows nats.go.
//
// The way in is Open with a Config, or New on a connection that exists. The
// result is a transport.Bus.
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
// Ensure makes them, and every consumer loop makes them again after loss. They
// may be deleted, purged or lost at any time: the dispatch rows send again what
// is open (T1).
//
// # Consuming
//
// A Consume call keeps pull requests open for exactly its free slots: slots =
// unfinished deliveries + messages asked for. The moment a delivery is finished
// its slot is asked for again, from the goroutine that finished it, so that one
// message at a time pays no hand-over; under load requests are grouped to half
// the slots. The pull protocol is spoken directly (consumer MSG.NEXT with
// expiry and idle heartbeats), because the client library's iterators count a
// message as done when it is read and not when it is finished.
//
// A binding (one inbox and its pull requests) ends with the connection, with a
// 409 or 503 status, or when heartbeats stop; the loop then ensures stream and
// consumer and binds again, with backoff and jitter.
//
// # Lanes (7.6)
//
// The consumer of a lane has JetStream's policy pinned_client: of the processes that
// pull, one gets the messages as long as it pulls again within Config.Pin. So those of
// one job meet in one process, where they share commits and states that are in memory.
// All engines ask for all lanes. One that has more than its share gives lanes up for a
// second or two, in which others take them; who drains gives its own up. That several
// processes have messages of one job is as right as ever (C3).
//
// A server that is shut down, or crashes, between an ack and the removal of its
// message may keep the message, below the ack floor of its consumer, where it is
// delivered to nobody. Whoever binds next removes it, and Oldest does not see it.
//
// # Publishing
//
// Messages go out without waiting; one inbox collects the PubAcks. The number in
// flight is bounded. A PubAck that does not come in time, or a connection that
// breaks, is ErrUnavailable for that message: it may be there or not.
//
// # Telling (W5)
//
// That a job has ended is said by a message without a stream, on
// quipu.<space>.ended.<job>. Each that listens subscribes to the one job; without
// a subscription the server drops the message.
package nats
