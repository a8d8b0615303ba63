package workers

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/quipu-journal/quipu/durable"
)

// ErrLost is the cause of the context of a branch of First that another branch
// was faster than.
var ErrLost = durable.ErrLost

// ErrUndoing is what calls return that are not recorded, in a function that has
// failed and is run once more, for its compensations only.
var ErrUndoing = durable.ErrUndoing

// Now is the time, UTC, when the function first came by: it is recorded, and every
// later run gets the same.
func Now(ctx context.Context) (time.Time, error) {
	return durable.Recorded(ctx, "now", func() (time.Time, error) { return time.Now().UTC().Round(0), nil })
}

// Rand is a random number, recorded as Now is.
func Rand(ctx context.Context) (uint64, error) {
	// Decimal digits: a JSON number would lose some.
	text, err := durable.Recorded(ctx, "rand", func() (string, error) {
		var b [8]byte
		_, err := rand.Read(b[:])
		return strconv.FormatUint(binary.BigEndian.Uint64(b[:]), 10), err
	})
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// UUID is a random UUID (version 4), recorded as Now is.
func UUID(ctx context.Context) (string, error) {
	return durable.Recorded(ctx, "uuid", func() (string, error) {
		id, err := uuid.NewRandom()
		return id.String(), err
	})
}

// Version says which version of the code is to run at a place that was changed: 0,
// the code from before the change, for a function that has been past it, otherwise
// latest, from 1 on. The answer is recorded and stays. A branch of All or First is
// told what the branch around it was told before, and otherwise decides for itself.
// Old code, and then the call, can go when no job needs them any more:
// docs/functions.md has the recipe. Outside a job it is latest.
func Version(ctx context.Context, change string, latest int) (int, error) {
	return durable.Version(ctx, change, latest)
}

// Compensate registers fn as what takes back a part of what the function does. Call
// it before that part: fn has to cope with what was not done, or only begun.
//
// The compensations run when the function ends with an error that no further attempt
// follows, before that is answered; and in a job of their own when somebody else
// ends it: an interrupt, an operator, the activity's within, a failure elsewhere in
// the flow. The latest registered runs first. Each runs as an effect of class
// Idempotent with effects.Key(ctx) for its key: a crash runs it again. One that
// fails runs again, after 1 s, 2 s … at most 1 min; after durable.MaxUndoAttempts
// failures the request is parked with class "undo". fn makes no calls of functions
// or effects of its own, and sees what the replayed function gave it.
//
// Outside a job it does nothing, but for a function that is called by Plain.
func Compensate(ctx context.Context, name string, fn func(context.Context) error) error {
	return durable.Compensate(ctx, name, fn)
}
