package collation

import (
	"errors"
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// Errors with which decisions refuse what a worker asks.
var (
	// ErrStale says that a request was answered, cancelled or taken over: the
	// worker stops (E9, J8).
	ErrStale = errors.New("stale: the request was answered, cancelled or taken over")
	// ErrLeased says that another run holds the request, or may still be at an
	// effect of it: hand the request back (E4, E9).
	ErrLeased = errors.New("leased by another worker")
	// ErrRejected says that the database refused the data of a batch (22xxx,
	// 23xxx, 54xxx), or would: commit message by message, so that one poisoned job
	// holds up nobody (J4).
	ErrRejected = errors.New("the database refused the data")
)

// Limits of a request's work.
const (
	MaxResult = 1 << 20 // bytes of the result of an effect (E6)
	MaxRuns   = 20      // runs of a request without an answer before it is stuck (E9)
)

// Classes of effects that are told apart (E3), with ClassUndo, a registered
// compensation, whose start is no call outside. Those outside have a start before
// their call.
const (
	ClassPure       = "pure"
	ClassTx         = "tx"
	ClassIdempotent = "idempotent"
	ClassGuarded    = "guarded"
)

// Lease is a run's hold on one turn of a request. It lasts as long as the session of
// the run's process (W8).
type Lease struct {
	Job        journal.JobID
	Request    journal.GUID
	Space      string
	Generation int64
	Turn       int
	Holder     string // the run, which no other run ever has
	Session    int64  // of its process
	Fence      int64
	Runs       int
	Timeout    time.Duration // of the attempt, 0: none; what the run starts is not taken over before (E4)
	// Resumes says that the job resumes another: effects that begin are looked for in the
	// generations before.
	Resumes bool
	// Fresh says that the run knows of no lease of its own yet. Its first write of an
	// effect takes one, in the same commit, as Keep would, and the row that is returned
	// has its fence. A lease one fence ahead that has the run's holder is its own then,
	// taken by a call whose answer was lost or is still on its way; so it is for Keep
	// (E9).
	Fresh bool
}

// Key names the request.
func (l *Lease) Key() RowKey { return RowKey{l.Job, l.Request} }

// EffectState is how far an effect came.
type EffectState string

// The states of an effect. NotDone: definitely not applied, runs again under
// the next key (E5).
const (
	EffectStarted   EffectState = "started"
	EffectCompleted EffectState = "completed"
	EffectNotDone   EffectState = "not_done"
)

// EffectRow is the stored state of one effect key.
type EffectRow struct {
	Key    journal.Digest
	Name   string
	Class  string
	N      int
	State  EffectState
	Result []byte
	Error  *journal.Failure
	Fence  int64
	Holder string
	// Live says that the run that started it holds the request still.
	Live bool
	// Position is the place of the call in a durable function (E15).
	Position string
	// Vouched says that an operator confirmed the recorded result: it is not
	// verified again (3.3).
	Vouched bool
}

// Again reports that a run with a higher fence took the unfinished effect over, to
// make its call again under the same key (E4): that the call of the older run was
// not done is then no outcome of the effect (E5).
func (r *EffectRow) Again(fence int64) bool {
	return r.Class == ClassIdempotent && r.State == EffectStarted && r.Fence > fence
}

// Effect is an effect with what its row says besides.
type Effect struct {
	EffectRow
	Request journal.GUID // that started it
	Seq     int64        // of its first entry
	Turn    int          // that started it
	Until   Micros       // when its call cannot be under way any more; Never: that is not known (E4)
}
