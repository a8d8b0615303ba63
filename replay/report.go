package replay

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Check is the id of a law of rules 2.5.
type Check string

// The checks, as docs/verify.md explains them.
const (
	V1  Check = "V1"  // seqs contiguous, every entry belongs to this job
	V2  Check = "V2"  // hashes, canonical spelling
	V3  Check = "V3"  // heads
	V4  Check = "V4"  // ledgers: before = after that precedes, lawful digits, stored = rebuilt
	V5  Check = "V5"  // ordinals
	V6  Check = "V6"  // semaphore = recount
	V7  Check = "V7"  // one snapshot, completion tasks once
	V8  Check = "V8"  // effects: starts and results
	V9  Check = "V9"  // effect rows = effect entries
	V10 Check = "V10" // dispatch pairing
	V11 Check = "V11" // origins
	V12 Check = "V12" // turns and attempts, late effects
	V13 Check = "V13" // timers, waits, signals
	V14 Check = "V14" // two replays, one digest: no check of the journal, but a self-test of this program
	V15 Check = "V15" // after the close
	V16 Check = "V16" // unknown kinds, versions, fields
	V17 Check = "V17" // what the flow's definition gives on the journal
	V18 Check = "V18" // outputs stored beside entries fit their digests
	V19 Check = "V19" // the definition fits the digest that the job carries
)

// Checks lists all checks in the order of a report.
var Checks = []Check{V1, V2, V3, V4, V5, V6, V7, V8, V9, V10, V11, V12, V13, V14, V15, V16, V17, V18, V19}

var titles = map[Check]string{
	V1: "seqs are contiguous", V2: "hashes and spelling", V3: "heads", V4: "ledgers", V5: "ordinals",
	V6: "semaphore", V7: "snapshot and completion tasks", V8: "effects", V9: "effect rows",
	V10: "dispatch rows", V11: "origins", V12: "turns and attempts", V13: "timers, waits, signals",
	V14: "self-test: two replays agree", V15: "nothing after the close", V16: "nothing unknown",
	V17: "what the flow gives", V18: "outputs beside entries", V19: "definition of the flow",
}

// Title says in a few words what the check is about.
func (c Check) Title() string { return titles[c] }

// Violation is the first entry that breaks a law, and how (J11). Seq 0 with the zero chain
// means the job as a whole: a stored row, a head.
type Violation struct {
	Check   Check
	Chain   journal.GUID
	Seq     int64
	Message string
}

// String gives check, place and message.
func (v Violation) String() string {
	switch {
	case v.Seq == 0 && v.Chain.IsZero():
		return fmt.Sprintf("%s: %s", v.Check, v.Message)
	case v.Chain.IsZero():
		return fmt.Sprintf("%s at entry %d: %s", v.Check, v.Seq, v.Message)
	}
	return fmt.Sprintf("%s at entry %d of chain %s: %s", v.Check, v.Seq, v.Chain, v.Message)
}

// Status is the outcome of one check.
type Status string

// The outcomes. NotProved is no fault by itself: this input cannot prove the check.
const (
	Proved    Status = "proved"
	Violated  Status = "violated"
	NotProved Status = "not proved"
)

// Result is the outcome of one check. Note says which part of it this input cannot prove, and
// why; a proved check may have one.
type Result struct {
	Check     Check
	Status    Status
	Violation *Violation
	Note      string
}

// Counts says how much was read.
type Counts struct {
	Entries   int64 // of all chains
	Effects   int64 // of them in effect chains
	Bytes     int64 // of bodies
	Instances int
	Messages  int // receipts
	Rows      int // open dispatch rows
	Waits     int // open waits for signals
	Left      int // messages that left for other jobs or for waits
	Chains    int // effect chains: requests that recorded effects
	Functions int // requests of durable functions that suspended
	Wakes     int // pauses of those that have come
}

// MaxOpen bounds Report.Open.
const MaxOpen = 100

// Report is what Verify found out about one job.
type Report struct {
	Header Header
	State  journal.JobState
	Head   journal.Head // of the main chain, as read
	Digest journal.Digest
	Counts Counts
	Checks []Result   // one for each of Checks, in that order
	First  *Violation // the first in reading order; nil: none
	Open   []Open
	// OpenCount is the number of all open things, beyond MaxOpen, too.
	OpenCount int
	// Broken is the first violation by the journal itself, nil for none. Differences are what the
	// tables have otherwise than the journal, at most MaxDifferences; Unlisted counts the others
	// (S11).
	Broken      *Violation
	Differences []Difference
	Unlisted    int
	// From is what the job resumes; nil: nothing. Copies is what it says to have taken over, for
	// HandOver to compare.
	From   *journal.From
	Copies []Copy
	// KnownExpiredAt is the moment by which a job of which only the tombstone is left had expired, with State
	// expired; 0: that is not known.
	KnownExpiredAt collation.Micros
}

// Violated reports whether any check is violated.
func (r *Report) Violated() bool { return r.First != nil }

// Result returns the outcome of one check.
func (r *Report) Result(c Check) Result {
	for _, x := range r.Checks {
		if x.Check == c {
			return x
		}
	}
	return Result{Check: c, Status: NotProved, Note: "unknown check"}
}
