package store

import (
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// Limits of Gauges. What is more is not counted, so that no question reads a large table (O4).
const (
	MaxGaugedJobs = 100_000 // of one flow and state
	MaxGauged     = 10_000  // of anything else
	MaxGaugedBy   = 100     // flows, topics, reasons
	// MaxSampledPages is of how many pages of the table of jobs Closed is told, of 8 KiB each.
	MaxSampledPages = 256
)

// Gauges is what the space has now. It is read by indexes of what is open, within the limits
// above.
type Gauges struct {
	// Jobs counts the open and the quarantined jobs of each deployed flow, the first flows by name.
	Jobs map[JobsOf]int64
	// Closed estimates the completed, failed and interrupted jobs that the space still has, of the
	// same flows, from a sample of their table: what is common is right to about a fifth, what is
	// rare may be missing. A small table is counted.
	Closed map[JobsOf]int64
	// Running are the requests that a process holds, by topic, and how long ago the oldest of them was
	// sent; the topics with most of them.
	Running map[string]Backlog
	// Lost are the requests of which an attempt has lost two runs or more with their process, by topic;
	// the topics with most of them. Many rows that are due earlier may hide some that wait.
	Lost map[string]LostRuns
	// Dead counts the open dead letters by reason; the reasons with most of them.
	Dead map[string]int64
	// Processes counts the live processes by role.
	Processes map[string]int64
	// Overdue are the rows that Due lists, Timers those of them that are timers which were not
	// sent before, Expired the jobs and tombstones whose time has passed.
	Overdue, Timers, Expired Backlog
}

// JobsOf names the jobs of one flow in one state.
type JobsOf struct {
	Flow  string
	State journal.JobState
}

// LostRuns are requests whose runs ended with their process (E9).
type LostRuns struct {
	N    int64         // how many requests
	Most int64         // runs that one of them has lost
	Job  journal.JobID // of that one
}

// Backlog is a number of things that are late, and how late the oldest is.
type Backlog struct {
	N   int64
	Age time.Duration
}
