package store

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// defaultPage is the number of lines on a page without a limit.
const defaultPage = 100

// AtMost refuses a call that asks for n things, and may ask for most (T11): ErrRejected.
func AtMost(op string, n, most int) error {
	if n <= most {
		return nil
	}
	return fmt.Errorf("%s: %w: %d in one call, the limit is %d", op, ErrRejected, n, most)
}

func page(op string, limit int) (int, error) {
	if limit <= 0 {
		return defaultPage, nil
	}
	return limit, AtMost(op, limit, MaxPage)
}

// Check sets the default limit, and refuses what is over the limits: ErrRejected.
func (f *DeadFilter) Check() (err error) {
	if f.Limit, err = page("dead letters", f.Limit); err != nil {
		return err
	}
	return AtMost("dead letters", len(f.Jobs), MaxPage)
}

// Check sets the default limit, and refuses what is over the limits: ErrRejected.
func (f *JobFilter) Check() (err error) {
	if _, _, err = f.Waiting(); err != nil {
		return err
	}
	f.Limit, err = page("jobs", f.Limit)
	return err
}

// SetCursor sets the Cursor from the time of the start and the id.
func (j *JobSummary) SetCursor() {
	j.Cursor = strconv.FormatInt(int64(j.Started), 10) + "." + j.ID.String()
}

// Bound returns the upper bound of the jobs that Before and To select: those that started before
// it, or then and with a smaller id. ErrRejected: Before is no cursor.
func (f *JobFilter) Bound() (started collation.Micros, id journal.JobID, err error) {
	started = math.MaxInt64
	if f.Before != "" {
		at, rest, _ := strings.Cut(f.Before, ".")
		n, err := strconv.ParseInt(at, 10, 64)
		if err == nil {
			id, err = journal.ParseJobID(rest)
		}
		if err != nil {
			return 0, journal.JobID{}, fmt.Errorf("%w: cursor %.80q: take the one of a listed job", ErrRejected, f.Before)
		}
		started = collation.Micros(n)
	}
	if f.To != 0 && f.To <= started {
		return f.To, journal.JobID{}, nil
	}
	return started, id, nil
}

// Waiting reads Waits: one of the words above; topic and signal may have a name, as in
// "topic:payments.charge". Error: ErrRejected.
func (f *JobFilter) Waiting() (what, name string, err error) {
	what, name, named := strings.Cut(f.Waits, ":")
	switch what {
	case "", WaitsTimer, WaitsChild, WaitsPerson:
		named = named || name != ""
	case WaitsTopic, WaitsSignal:
		named = named && name == ""
	default:
		named = true
	}
	if named {
		return "", "", fmt.Errorf("%w: waits %.80q: use topic, topic:NAME, signal, signal:NAME, timer, child or person", ErrRejected, f.Waits)
	}
	return what, name, nil
}

// Narrowed is the filter with the states of what it waits for: only open jobs wait. fits is false
// if it then fits no job. Error: ErrRejected, as for Waiting.
func (f JobFilter) Narrowed() (narrowed JobFilter, fits bool, err error) {
	what, _, err := f.Waiting()
	if err != nil || what == "" {
		return f, true, err
	}
	fits = len(f.States) == 0 || slices.Contains(f.States, journal.JobOpen)
	f.States = []journal.JobState{journal.JobOpen}
	return f, fits, nil
}

// standing are the states whose jobs have an index, and whether all of them are few.
var standing = map[journal.JobState]bool{
	journal.JobOpen: true, journal.JobQuarantined: true, journal.JobFailed: false, journal.JobInterrupted: false,
}

// Standing reports a filter whose states have an index. exact: the index alone says which jobs
// fit, so that a page reads no others.
func (f *JobFilter) Standing() (indexed, exact bool) {
	indexed, exact = len(f.States) > 0, f.Version == "" && f.Prefix == "" && f.Waits == ""
	for _, state := range f.States {
		few, known := standing[state]
		indexed, exact = indexed && known, exact && few
	}
	return indexed, exact && indexed
}

// Looks is Look, or its default.
func (f *JobFilter) Looks() int {
	switch {
	case f.Look > 0:
		return f.Look
	case f.Waits != "":
		return MaxAsked
	}
	return MaxLook
}

// Compares reports a filter for which a page compares jobs one after another, and so ends after it
// has looked at Looks of them.
func (f *JobFilter) Compares() bool {
	narrow := len(f.States) > 0 || f.Flow != "" || f.Version != "" || f.Prefix != "" || f.Waits != ""
	_, exact := f.Standing()
	return narrow && !exact && len(f.Tags) == 0 && f.Parent.IsZero()
}
