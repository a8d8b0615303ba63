package store

import (
	"fmt"
	"strings"
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
