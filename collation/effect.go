package collation

import (
	"errors"
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// Errors that refuse what a worker asks.
var (
	// ErrStale says that a request was answered, cancelled or taken over: the
	// worker stops (E9, J8).
	ErrStale = errors.New("stale: the request was answered, cancelled or taken over")
	// ErrLeased says that another run holds the request, or may still be busy with one of its
	// effects: hand the request back (E4, E9).
	ErrLeased = errors.New("leased by another worker")
	// ErrBehind says that the outcome of an earlier effect, which the run has sent, is not recorded
	// by this run: what follows it is not recorded either (E4).
	ErrBehind = errors.New("an earlier outcome of the run is not recorded")
	// ErrRejected says that the database refused the data of a batch (SQLSTATE 22xxx, 23xxx,
	// 54xxx), or would. The messages are then committed one by one, so that one bad job holds up
	// nobody else (J4).
	ErrRejected = errors.New("the database refused the data")
)

// Limits of a request's work.
const (
	MaxResult = 1 << 20 // bytes of the result of an effect (E6)
	MaxRuns   = 20      // runs of a request without an answer before it is stuck (E9)
)

// Classes of effects: what a run may do after one with an unknown outcome (E3). ClassUndo, a
// registered compensation, is one more; its start is no call outside. Idempotent and guarded effects
// have a start entry before their call.
const (
	ClassPure       = "pure"
	ClassTx         = "tx"
	ClassIdempotent = "idempotent"
	ClassGuarded    = "guarded"
)

// Lease is a run's hold on one turn of a request. It lasts as long as the session of the run's
// process (W8).
type Lease struct {
	Job        journal.JobID
	Request    journal.GUID
	Space      string
	Generation int64
	Turn       int
	Holder     string // the run; the name is never used again
	Session    int64  // of the run's process
	Fence      int64
	Runs       int
	Timeout    time.Duration // of the attempt, 0: none; its effects are not taken over before (E4)
	// Resumes says that the job resumes another: when an effect begins, earlier generations are
	// searched for it.
	Resumes bool
	// Fresh says that the run knows of no lease of its own yet. Its first write of an effect
	// takes one in the same commit, as Keep would, and the returned row has its fence. If the
	// row is one fence ahead and has the run's holder, the lease is the run's own: it was taken
	// by a call whose answer was lost or is still on its way (E9). Keep does the same.
	Fresh bool
	// After, if it is not zero, is the effect whose outcome the run has sent last and does not know
	// to be recorded. The write is refused unless it is, as this run's (ErrBehind).
	After journal.Digest
	// Looks is for a hand-back of what no run has: the run's answer may be on its way. The row is
	// then sent again only after a look at the queues (T2).
	Looks bool
}

// Key names the request.
func (l *Lease) Key() RowKey { return RowKey{l.Job, l.Request} }

// EffectState is how far an effect came.
type EffectState string

// The states of an effect. NotDone means that it was certainly not applied; it runs again under
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
	// Live says that the run that started the effect still holds the request.
	Live bool
	// Position is the place of the call in a durable function (E15).
	Position string
	// Vouched says that an operator confirmed the recorded result: it is not
	// verified again (3.3).
	Vouched bool
}

// Again reports whether a run with a higher fence took over the unfinished effect to repeat its
// call under the same key (E4). NotDone from the older run is then no outcome of the effect
// (E5).
func (r *EffectRow) Again(fence int64) bool {
	return r.Class == ClassIdempotent && r.State == EffectStarted && r.Fence > fence
}

// Effect is an EffectRow with the facts of its start.
type Effect struct {
	EffectRow
	Request journal.GUID // that started it
	Seq     int64        // of its first entry
	Turn    int          // that started it
	Until   Micros       // the call has certainly ended by then; Never: unknown (E4)
}
