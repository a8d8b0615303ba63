package view

import "time"

// Space is what happens in a space at one moment. Numbers are counted up to a limit: of jobs 100 000 of a
// flow, of anything else 10 000.
type Space struct {
	Time      time.Time        `json:"time"` // by the clock of the process that looked
	Name      string           `json:"space"`
	Processes map[string]int64 `json:"processes"`          // the living ones, by role
	Started   float64          `json:"started_per_second"` // jobs, over the last 10 s
	// Ended is the rate of jobs that ended. It is known to who looks more than once; nil: it is not known.
	Ended  *float64    `json:"ended_per_second,omitempty"`
	Flows  []FlowLoad  `json:"flows"`  // those with open or quarantined jobs, the one with most open ones first
	Topics []TopicLoad `json:"topics"` // those that nobody serves first, then by what waits and runs
	Stuck  []Trouble   `json:"stuck"`  // what is wrong, the worst first
	// Failing are the flows whose jobs failed in the last hour and were not resumed, the last one first.
	Failing []FlowFailing `json:"failing"`
}

// FlowFailing is a flow whose jobs failed in the last hour.
type FlowFailing struct {
	Flow   string    `json:"flow"`
	Failed int64     `json:"failed"`         // how many did
	More   bool      `json:"more,omitempty"` // they may be more: so many were counted
	Last   time.Time `json:"last"`           // when the last of them did
}

// FlowLoad is how many jobs of a flow have not ended.
type FlowLoad struct {
	Flow        string `json:"flow"`
	Open        int64  `json:"open"`
	Quarantined int64  `json:"quarantined"`
}

// TopicLoad is what a space has of a topic.
type TopicLoad struct {
	Topic     string   `json:"topic"`
	Queued    *int64   `json:"queued,omitempty"` // requests that wait in NATS; nil: it is not known
	Oldest    float64  `json:"oldest_seconds,omitempty"`
	Running   int64    `json:"running"`
	Longest   float64  `json:"longest_seconds,omitempty"` // since the request was sent whose run has gone on longest
	Rate      float64  `json:"runs_per_second"`           // runs that ended, over the last minute
	Processes []string `json:"processes"`                 // that serve it, by name
	Elsewhere bool     `json:"elsewhere,omitempty"`       // none of them does, but a worker in another language
	// Early are its early runs; nil: none of the processes may begin one.
	Early *EarlyRuns `json:"early,omitempty"`
}

// EarlyRuns are the runs of a topic that began before their causes had committed, over the last minute,
// in all its processes.
type EarlyRuns struct {
	Kept    int64   `json:"kept"`             // their answers committed with their causes
	Late    int64   `json:"late"`             // their causes committed before they answered
	Dropped int64   `json:"dropped"`          // their causes did not commit
	Mean    float64 `json:"mean_run_seconds"` // of all runs of the topic, lately; 0: there was none
}

// MeanRun is Mean as a duration.
func (e *EarlyRuns) MeanRun() time.Duration { return time.Duration(e.Mean * float64(time.Second)) }

// Served says that somebody takes the requests of the topic.
func (t *TopicLoad) Served() bool { return len(t.Processes) > 0 || t.Elsewhere }

// Trouble is something that waits for a person, or for too long.
type Trouble struct {
	What   string  `json:"what"` // a sentence without a full stop
	N      int64   `json:"n"`    // how many there are of it
	Oldest float64 `json:"oldest_seconds,omitempty"`
	Help   string  `json:"help"` // a command that shows it
}
