package transport

import "time"

// TroubleKind says what a Trouble is of.
type TroubleKind string

// The kinds of troubles.
const (
	// TroubleAway is a server that does not answer: nothing is sent or received.
	TroubleAway TroubleKind = "away"
	// TroubleRefused is a stream that takes no messages: everything that goes by it waits.
	TroubleRefused TroubleKind = "refused"
	// TroubleStream is a stream whose settings break the promise.
	TroubleStream TroubleKind = "stream"
	// TroubleConsumer is a consumer that gives nothing out, or too little.
	TroubleConsumer TroubleKind = "consumer"
	// TroubleRoom is a topic that has all the room of a stream that one topic may have. Its
	// requests wait in their rows; the others go on.
	TroubleRoom TroubleKind = "room"
)

// Trouble is something that keeps messages from going their way, for people. It says nothing about
// whether a message was sent.
type Trouble struct {
	Kind TroubleKind
	// Name is that of the stream, the consumer or the topic.
	Name string
	// Queue is which messages wait: the word of a Kind, and of a request with its topic
	// ("work.charge"), if only that topic's wait.
	Queue string
	// Text is a sentence with the limit and what to do, without a full stop.
	Text string
	// Cause is what else there is to say, which may name hosts: only people of the space read it.
	Cause string
	// Since is when it began, by this process's clock.
	Since time.Time
}

// Stops says whether a process that has this trouble cannot do its work: only one topic waits for
// room.
func (t *Trouble) Stops() bool { return t.Kind != TroubleRoom }
