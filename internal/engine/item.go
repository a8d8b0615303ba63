package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// item is one thing that a batch carries (W3): a message that was delivered, or a call, which is
// what somebody in this process wants committed: a start, a signal, an effect, an operator's
// action. A batch asks an item what it wants loaded, lets it decide, and tells it what became of
// it.
type item interface {
	// about names the item, for who watches the process.
	about() Busy
	// job is the job, or the mailbox, whose items are decided in their order; zero: none.
	job() journal.JobID
	// unit names what the item may have to wait for, when it is carried outside of batches: what
	// waits for the same is carried one after another, or together.
	unit() (name string, together bool)
	// rank says how likely it is that others wait because of the item, when a batch could not
	// have all that it needs: the highest rank leaves the batch first.
	rank() int
	// want lists what the decision needs loaded, for each attempt anew.
	want(b *batch) []store.Want
	// decide decides on what was loaded, for each attempt anew, and adds to the batch what shall
	// be written. The plan is that of a message. An error leaves nothing of the item in the batch.
	// needs: what it misses is loaded, and the item is asked again. errLater: the next batch
	// decides. store.ErrBusy: it has to wait for another transaction. *failedError: the batch is
	// tried again. Any other error ends the item.
	decide(ctx context.Context, b *batch) (*collation.Plan, error)
	// lose learns what a test-and-set was lost to, before the next attempt.
	lose(e *store.LostError)
	// refuse learns that the item is refused for good, and reports whether it decides once more,
	// on that.
	refuse(err error) (again bool)
	// giveUp counts an attempt that did not reach the database, and reports whether it was the
	// last one. since is when the loop began with the item.
	giveUp(err error, since time.Time, ending bool) bool
	// stopping reports whether the item shall be handed back rather than wait.
	stopping() bool
	// settle ends the item: it is answered or acked, or handed back because of err. With fateRepeat
	// its steps so far are committed, and it has further ones.
	settle(l *loop, b *batch, became fate, err error)
}

// fate is what became of an item in a batch.
type fate uint8

// The fates.
const (
	fatePending fate = iota // not decided yet
	fateCommit              // what it wants written commits with the batch, if anything is to be written
	fateRepeat              // so does this, and the item has further commits to make
	fateLater               // the next batch decides
	fateBusy                // another transaction holds what it needs (J3)
	fateSlow                // its decision took too long and was stopped
	fateEnded               // it ends with an error, and nothing of it commits
)

// decision is an item of a batch with what became of it.
type decision struct {
	item  item
	plan  *collation.Plan // of a message; nil: there is none
	fate  fate
	err   error         // of fateEnded
	loads int           // how often it asked for state
	took  time.Duration // its decision, so far
}

// needs is the state that decisions miss, by job or mailbox: it is loaded, and they are asked
// again.
type needs map[journal.JobID]*collation.Need

// Error is for an item that never finds what it misses.
func (n needs) Error() string { return fmt.Sprintf("it misses state of %d jobs", len(n)) }

// errLater puts an item off to the next batch.
var errLater = errors.New("put off to the next batch")

// failedError ends the attempt of a whole batch, because the database does not answer.
type failedError struct{ error }

func (e *failedError) Unwrap() error { return e.error }

// unanswered reports whether err says that the database does not answer.
func unanswered(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// failed is a failedError if the database does not answer, otherwise err.
func failed(err error) error {
	if unanswered(err) {
		return &failedError{err}
	}
	return err
}

// The ranks. What writes only on an effect chain waits for nobody. A call is mostly a start whose
// key a caller's transaction is just taking.
const (
	rankEffect = iota
	rankMessage
	rankCall
)

// effectOf is what an item writes on an effect chain; nil: it writes on none.
func effectOf(it item) *effect {
	if x, is := it.(*call); is {
		return x.effect
	}
	return nil
}
