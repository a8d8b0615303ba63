package store

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// ErrSession is an ErrStale about the session, not the request: the session that was to take it
// has ended.
var ErrSession = fmt.Errorf("the session has ended: %w", ErrStale)

// Unpublished bounds how long before its last renewal a session may have committed rows that it
// did not publish. Earlier rows are known to be published.
const Unpublished = 5 * time.Second

// EarlyAgain is how long no run of a topic begins before its cause has committed, once a process that
// ran it early was declared dead.
const EarlyAgain = time.Minute

// Sessions tells the processes of a space which of them live (W8).
type Sessions interface {
	// OpenSession begins the session of a process. The session is over once it was not renewed
	// for its lease, by the database's clock, and another session says so.
	OpenSession(ctx context.Context, p Process) (Session, error)
	// Processes lists the live processes, the oldest first, at most MaxPage. It knows none
	// without a session: clients, and workers in other languages.
	Processes(ctx context.Context) ([]ProcessView, error)
	// Silent lists the processes that were not heard of for their lease and that nobody has
	// declared dead, the oldest first, at most MaxPage: they, or the others, cannot write.
	Silent(ctx context.Context) ([]ProcessView, error)
}

// Process is what a process tells the others. Name, Build, Roles and Topics are for people.
type Process struct {
	Name   string
	Build  string
	Roles  []string
	Topics []string // the topics it has handlers for
	Early  []string // those of them whose runs may begin before their causes have committed (L4)
	Lanes  int      // number of lanes that the process has configured; 0: none
	Engine bool     // it handles messages of lanes, and has a share of the lanes (T9)
	Lease  time.Duration
}

// ProcessView is a live process.
type ProcessView struct {
	Process
	Since   collation.Micros // since then it has renewed without a gap
	Renewed collation.Micros // last renewal
	Doing                    // as its last Renew gave it
}

// Doing is what a process does now. It is for people.
type Doing struct {
	// Ran is how many runs of each of the process's Topics have ended in the last minute, in their
	// order; nil: none.
	Ran []int64
	// Early is what became of the early runs of each of the process's Early topics in the last minute,
	// in their order; nil: none.
	Early []EarlyRuns
	// Busy is the message on which an engine of the process has been deciding for long; zero: none.
	Busy Busy
	// Troubles are what keeps messages from their way, at most MaxTroubles.
	Troubles []Trouble
}

// EarlyRuns are the runs of a topic that began before their causes had committed (L4).
type EarlyRuns struct {
	Kept    int64         // their answers committed with their causes
	Late    int64         // their causes committed before they answered
	Dropped int64         // their causes did not commit
	Mean    time.Duration // how long a run of the topic takes, early or not: a moving average; 0: there was none
}

// Busy is a message that holds up an engine.
type Busy struct {
	For     time.Duration
	Job     journal.JobID // zero: it is none of a job
	Message journal.GUID
}

// MaxTroubles bounds the troubles that a process tells the others.
const MaxTroubles = 20

// Trouble is something that keeps messages from going their way on the bus, for people. Kind, Name,
// Queue and Text are those of transport.Trouble. Cause is the error behind it, which may name hosts and
// jobs: a probe, which anybody may ask, gets Text alone.
type Trouble struct {
	Kind  string           `json:"kind"`
	Name  string           `json:"name"`
	Queue string           `json:"queue,omitempty"`
	Text  string           `json:"text"`
	Cause string           `json:"cause,omitempty"`
	Since collation.Micros `json:"since"`           // by the clock of the process
	Stops bool             `json:"stops,omitempty"` // the process cannot do its work
}

// Session is the session of one process, on a connection of its own. The process holds a row,
// which names the session, as long as the session lasts. It is not safe for concurrent use.
type Session interface {
	// ID returns the session's number, which is never used again.
	ID() int64
	// Renew says that the process lives. It also ends other sessions that were not renewed for
	// their lease, but only if this one was renewed all that time: a process that was cut off
	// declares none dead. Rows that those held become free under a higher fence and due now; rows
	// that they may not have published are due without a look (T2). That may outlast the call;
	// ended names the processes for which it is done. ErrStale: this session was ended.
	//
	// d is what the others are told.
	Renew(ctx context.Context, d Doing) (ended []string, err error)
	// Next returns the time from the last Renew until the first of the other sessions is over, if
	// it is not renewed; 0 if there is none.
	Next() time.Duration
	// Engines returns how many sessions of engines were live at the last Renew, including this
	// one.
	Engines() int
	// Killers returns the topics that are early nowhere, as of the last Renew: those of sessions that
	// were declared dead within EarlyAgain, or that have not renewed for half of their lease (L4). A
	// session that has ended by End counts as none.
	Killers() []string
	// Lost returns which of the leases have ended: the request was answered, cancelled or taken
	// over, or its job is closed.
	Lost(ctx context.Context, leases []Lease) ([]LostLease, error)
	// Held lists the requests that the session holds, at most 10 000. It may take long, and may
	// run beside the other methods.
	Held(ctx context.Context) ([]Lease, error)
	// End ends the session and frees what it holds, like that of a dead process. It always closes
	// the connection.
	End(ctx context.Context) error
}

// LostLease is a lease that Lost found ended; Place is its index in the call.
type LostLease struct {
	Place  int
	Closed bool // the job is closed
}
