package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrPreflight says that a setting of a server would break the promise, so the process must not
// start (S7). The error names each check, the value that it saw, and what to do.
var ErrPreflight = errors.New("preflight refused")

// Names of the checks of the database.
const (
	CheckFsync     = "fsync-off"
	CheckFullPages = "full-page-writes-off"
	CheckCommit    = "synchronous-commit-off"
	CheckStandby   = "standby"
	CheckVersion   = "server-version"
)

// checks has why a check cannot be accepted, by its name; "" where an operator can accept it.
var checks = map[string]string{
	CheckFsync: "", CheckFullPages: "", CheckCommit: "",
	CheckStandby: "nothing can be written there",
	CheckVersion: "the statements need a newer server",
	// Those of NATS.
	"jetstream-off":   "nothing can be sent without it",
	"max-payload":     "the engine's own messages do not fit",
	"stream-settings": "it can be mended at the stream, and nothing is lost by that",
}

// Weakness is a check of the preflight that failed.
type Weakness struct {
	Check string // its name
	Value string // what it saw
	What  string // the setting, its value and what to do, for people
}

// CheckAccept refuses names of checks that do not exist, and those of checks that nobody can
// accept. The error lists what can be accepted.
func CheckAccept(names []string) error {
	var can []string
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if checks[name] == "" {
			can = append(can, name)
		}
	}
	for _, name := range names {
		why, known := checks[name]
		switch {
		case !known:
			return fmt.Errorf("no check is called %.40q: %s can be accepted", name, strings.Join(can, ", "))
		case why != "":
			return fmt.Errorf("the check %s cannot be accepted: %s", name, why)
		}
	}
	return nil
}

// Judge returns the weaknesses that are accepted by name. The others are an ErrPreflight.
func Judge(found []Weakness, accept []string) (accepted []Weakness, err error) {
	var faults []string
	for _, w := range found {
		if slices.Contains(accept, w.Check) && checks[w.Check] == "" {
			accepted = append(accepted, w)
			continue
		}
		fault := w.Check + ": " + w.What
		if checks[w.Check] == "" {
			fault += fmt.Sprintf(" (or accept it: --accept %s)", w.Check)
		}
		faults = append(faults, fault)
	}
	if len(faults) > 0 {
		err = fmt.Errorf("%w: %s", ErrPreflight, strings.Join(faults, "; "))
	}
	return accepted, err
}
