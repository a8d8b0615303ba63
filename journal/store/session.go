package store

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
)

// ErrSession is an ErrStale that says nothing of the request: the session has ended for
// which it was to be taken.
var ErrSession = fmt.Errorf("the session has ended: %w", ErrStale)

// Unpublished is how long before its last renewal a session may have committed what it
// has not published: what it had published earlier is known to be.
const Unpublished = 5 * time.Second

// Sessions is what the processes of a space know each other by (W8).
type Sessions interface {
	// OpenSession begins the session of a process. It is over when it was not renewed
	// for its lease, on the database's clock, and another session says so.
	OpenSession(ctx context.Context, p Process) (Session, error)
	// Processes lists those that live, the longest living first, at most MaxPage. One that
	// has no session is not known: a client, or a worker in another language.
	Processes(ctx context.Context) ([]ProcessView, error)
}

// Process is what the others know of one. Name, Build, Roles and Topics are for people.
type Process struct {
	Name   string
	Build  string
	Roles  []string
	Topics []string // that it has handlers for
	Lanes  int      // of the space, as the process has it; 0: none
	Engine bool     // it takes the messages of lanes, and has a share of them (7.6)
	Lease  time.Duration
}

// ProcessView is a process that lives.
type ProcessView struct {
	Process
	Since   collation.Micros // from when on it was heard of without a gap
	Renewed collation.Micros // when it was heard of last
}

// Session is that of one process, on a connection that nothing else uses. What its
// process holds, it holds as long as the session lasts: a row names it. It is not safe
// for concurrent use.
type Session interface {
	// ID is never given again.
	ID() int64
	// Renew says that the process lives, and ends the sessions of others that have not
	// for their lease, if this one has all that time: who was cut off himself declares
	// nobody dead. What those held is free, under a new fence; it is due now, as is what
	// they may not have published, and sent without a look (T2). That may take longer than the call: ended names those of
	// which it has been done. ErrStale: this one has been ended.
	Renew(ctx context.Context) (ended []string, err error)
	// Next is how long after the last Renew the first of the other sessions is over, if
	// it is not renewed; 0: there is none.
	Next() time.Duration
	// Engines is how many of the sessions were an engine's and not over when this one was
	// last renewed, itself included.
	Engines() int
	// Lost looks which of the leases are no leases any more: the request was answered,
	// cancelled or taken over, or its job is closed.
	Lost(ctx context.Context, leases []Lease) ([]LostLease, error)
	// Held lists the requests that the session holds, at most 10 000 of them. It may take
	// long, and be called beside the others.
	Held(ctx context.Context) ([]Lease, error)
	// End ends the session, and frees what it holds, as that of a dead one is. The
	// connection is closed whatever it returns.
	End(ctx context.Context) error
}

// LostLease is the answer of Lost for one lease, by its place.
type LostLease struct {
	Place  int
	Closed bool // the job is
}
