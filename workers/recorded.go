package workers

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/quipu-journal/quipu/internal/durable"
)

// Now is the time, in UTC, when the function first called it. It is recorded, and every
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

// Version says which version of the code to run at a place that was changed: 0, the code
// from before the change, if the function has already passed it, otherwise latest (at
// least 1). The answer is recorded and stays. A branch of All or First gets the answer
// that the code around it got before, and otherwise decides for itself. docs/functions.md
// says when old code, and then the call, can be removed. Outside a job it is latest.
func Version(ctx context.Context, change string, latest int) (int, error) {
	return durable.Version(ctx, change, latest)
}

// Compensate registers fn as what takes back a step of the function. Call it before that
// step: fn has to cope with a step that was not done, or only begun.
//
// The compensations run when the function ends with an error that no further attempt
// follows, before that error is answered. When something else ends the function (an
// interrupt, an operator, the activity's within, a failure elsewhere in the flow) they
// run in a job of their own. The latest registered runs first. Each runs as an effect of
// class Idempotent with effects.Key(ctx) as its key, so a crash runs it again. One that
// fails runs again after 1 s, 2 s … at most 1 min; after 10 failures
// the request is parked with class "undo". fn must not make recorded calls or effects of
// its own; it sees what the replayed function gave it.
//
// Outside a job it does nothing, unless quiputest.Plain called the function.
func Compensate(ctx context.Context, name string, fn func(context.Context) error) error {
	return durable.Compensate(ctx, name, fn)
}
