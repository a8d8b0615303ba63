package observer

// Names of the metrics, the one list of all instruments (O4).
const (
	MetricTransitions  = "quipu.transitions"
	MetricBatch        = "quipu.batch.size"
	MetricCommit       = "quipu.commit.seconds"
	MetricRedelivered  = "quipu.redeliveries"
	MetricStale        = "quipu.stale"
	MetricWithoutRow   = "quipu.without_row"
	MetricRefused      = "quipu.refused"
	MetricDecidedAgain = "quipu.decided_again"
	MetricHot          = "quipu.hot"
	MetricEarly        = "quipu.early"
	MetricStopped      = "quipu.stopped"
	MetricResent       = "quipu.resent"
	MetricUnsent       = "quipu.unsent"
	MetricDead         = "quipu.dead_letters"
	MetricStarts       = "quipu.starts"
	MetricWaits        = "quipu.waits"
	MetricAsked        = "quipu.starts.asked"
	MetricBegun        = "quipu.jobs.begun"
	MetricClosed       = "quipu.jobs.closed"
	MetricHandled      = "quipu.handler.attempts"
	MetricHandling     = "quipu.handler.seconds"
	MetricEffects      = "quipu.effects"
	MetricVerified     = "quipu.effects.verified"
	MetricSignals      = "quipu.signals"
	MetricScheduled    = "quipu.scheduled"
	MetricAnother      = "quipu.another_database"
	MetricMessages     = "quipu.messages"
	MetricBlind        = "quipu.gauges.failed"
	MetricTurnedAway   = "quipu.http.refused"

	MetricWaiting     = "quipu.waiting"
	MetricBusy        = "quipu.busy.seconds"
	MetricConnections = "quipu.pool.connections"
	MetricPoolLimit   = "quipu.pool.limit"
	MetricPoolWaits   = "quipu.pool.waits"
	MetricPoolWaited  = "quipu.pool.wait.seconds"

	MetricJobs            = "quipu.jobs"
	MetricKept            = "quipu.jobs.closed.estimate"
	MetricDeadOpen        = "quipu.dead_letters.open"
	MetricOverdue         = "quipu.rows.overdue"
	MetricOverdueAge      = "quipu.rows.overdue.seconds"
	MetricTimersLate      = "quipu.timers.late"
	MetricTimersLateAge   = "quipu.timers.late.seconds"
	MetricQueued          = "quipu.topic.queued"
	MetricOldest          = "quipu.topic.oldest.seconds"
	MetricRunning         = "quipu.topic.running"
	MetricLanesUnpulled   = "quipu.lanes.unpulled"
	MetricStreamFill      = "quipu.stream.fill"
	MetricTroubles        = "quipu.troubles"
	MetricSessions        = "quipu.sessions"
	MetricRetention       = "quipu.retention.backlog"
	MetricRetentionBehind = "quipu.retention.backlog.seconds"
)

// Kind is what a metric's numbers mean.
type Kind string

// The kinds. Count adds to a counter, Observe adds a value to a distribution. Gauges and totals
// come from a Source: a gauge is a value of now, and a total has grown since the process began.
const (
	Counter      Kind = "counter"
	Distribution Kind = "histogram"
	Gauge        Kind = "gauge"
	Total        Kind = "total"
)

// MaxLabels is how many labels a metric may have.
const MaxLabels = 2

// Metric is one instrument of the runtime.
type Metric struct {
	Name   string
	Kind   Kind
	Unit   string   // as UCUM writes it: s, {message}
	Labels []string // the attributes that it takes, at most MaxLabels; all others are dropped
	Space  bool     // it says the same of the whole space in every engine; others say nothing of it
	Help   string
	Bounds []float64 // of a distribution
}

// Metrics returns all instruments. docs/metrics.md says the same.
func Metrics() []Metric {
	return append(append(counted(), asked()...), space()...)
}

// seconds are the bounds of commits, handling those of handlers.
var (
	seconds  = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}
	handling = []float64{.001, .005, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300, 1800}
	sizes    = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// counted are the metrics of what the process does.
func counted() []Metric {
	n := func(name, unit, help string, labels ...string) Metric {
		return Metric{Name: name, Kind: Counter, Unit: unit, Labels: labels, Help: help}
	}
	return []Metric{
		n(MetricTransitions, "{message}", "Messages handled: the steps of jobs."),
		{Name: MetricBatch, Kind: Distribution, Unit: "{message}", Help: "Messages in one transaction.", Bounds: sizes},
		{Name: MetricCommit, Kind: Distribution, Unit: "s", Help: "Time of a batch from its load to its commit.", Bounds: seconds},
		n(MetricRedelivered, "{message}", "Deliveries after the first; of requests with their topic.", "topic"),
		n(MetricStale, "{message}", "Messages that came too late: their ledger says that they are done."),
		n(MetricWithoutRow, "{message}", "Messages acked that have neither a receipt nor a dispatch row, or are of another epoch."),
		n(MetricRefused, "{message}", "Messages that nobody acts on. forged: the MAC does not hold; no_key: no key to check it; topic: signed with the key of another topic; old: a mark of the database that was published again.", "reason"),
		n(MetricDecidedAgain, "{batch}", "Batches decided again after a lost test-and-set."),
		n(MetricEarly, "{run}", "Runs that began before their cause had committed. kept: answered in the same commit; late: answered after it; dropped: the cause did not commit.", "topic", "outcome"),
		n(MetricHot, "{message}", "Messages by how their job's state was found. hit: in memory; loaded: read; lost: the one in memory was refuted.", "outcome"),
		n(MetricStopped, "{decision}", "Decisions that took longer than 5 s and were stopped without a verdict; their messages are tried again a few times, and then wait for a person."),
		n(MetricResent, "{message}", "Rows sent again by the sweeper."),
		n(MetricUnsent, "{message}", "Messages that NATS did not take, because their stream or the part of their topic is full, or the stream says nothing: their rows wait. By queue: lane, start, work; of requests with their topic.", "queue", "topic"),
		n(MetricDead, "{letter}", "Dead letters written.", "reason"),
		n(MetricStarts, "{start}", "Starts that callers of this process asked for: begun, existing, conflict, failed.", "outcome"),
		n(MetricAsked, "{start}", "Starts that clients asked for (roles of the database), by what this engine made of them: begun, existing, refused.", "outcome"),
		n(MetricWaits, "{wait}", "Waits for jobs that have ended: ended, parked, left (the caller gave up), failed.", "outcome"),
		n(MetricBegun, "{job}", "Jobs that the process began, children included. Those of StartTx commit with their caller and are not counted.", "flow"),
		n(MetricClosed, "{job}", "Jobs that the process closed: completed, failed, interrupted; or found quarantined.", "flow", "state"),
		n(MetricHandled, "{attempt}", "Runs of handlers by how they ended.", "topic", "outcome"),
		{Name: MetricHandling, Kind: Distribution, Unit: "s", Labels: []string{"topic"}, Help: "Time that a run of a handler took.", Bounds: handling},
		n(MetricEffects, "{effect}", "Effects by class and outcome.", "class", "outcome"),
		n(MetricVerified, "{answer}", "Answers of verifiers. Of unfinished effects: done, not_done, unknown; of completed ones: confirmed, contradicted, unconfirmed.", "mode", "outcome"),
		n(MetricSignals, "{signal}", "Signals by what became of them: consumed, kept, missed, duplicate.", "outcome"),
		n(MetricScheduled, "{job}", "Jobs due by a schedule: started, already, refused.", "outcome"),
		n(MetricAnother, "{time}", "Times that the process found its database to be another one than the space's, and stopped working."),
		n(MetricBlind, "{ask}", "Times that gauges could not be asked, by server: postgres, nats.", "server"),
		n(MetricTurnedAway, "{request}", "Requests that the guard of the console and the HTTP API refused, by code: unauthenticated, forbidden, cross_origin, wrong_host, too_many_requests, busy, unavailable.", "code"),
	}
}

// asked are the metrics of the process that are read when somebody collects them.
func asked() []Metric {
	return []Metric{
		{Name: MetricWaiting, Kind: Gauge, Unit: "{wait}", Help: "Callers that wait for a job now."},
		{Name: MetricMessages, Kind: Total, Unit: "{message}", Labels: []string{"kind", "way"}, Help: "Messages that the process sent, again each time, by kind and by what carried them. jetstream: published to NATS; memory: handed over within the process; folded: decided in the transaction that caused it."},
		{Name: MetricTroubles, Kind: Gauge, Unit: "{trouble}", Labels: []string{"kind"}, Help: "What keeps this process from its work, as /readyz says it. another, settings, read-only: the database; session, commit, slow: nothing can be written there; busy: an engine decides on one message for long; away, refused, stream, consumer: NATS; room: a topic has its part of a stream, its requests wait; witness: NATS does not store how new the database is."},
		{Name: MetricBusy, Kind: Gauge, Unit: "s", Labels: []string{"on"}, Help: "How long the process has been busy with one message, or has waited for one answer of the database, if that is over 2 or 10 s; otherwise 0. on: message, database."},
		{Name: MetricConnections, Kind: Gauge, Unit: "{connection}", Labels: []string{"state"}, Help: "Connections of the pool to Postgres: used, idle."},
		{Name: MetricPoolLimit, Kind: Gauge, Unit: "{connection}", Help: "Connections that the pool may have."},
		{Name: MetricPoolWaits, Kind: Total, Unit: "{wait}", Help: "Times that somebody had to wait for a connection of the pool."},
		{Name: MetricPoolWaited, Kind: Total, Unit: "s", Help: "Time spent waiting for a connection of the pool."},
	}
}

// space are the metrics of the whole space, which its engines read.
func space() []Metric {
	g := func(name, unit, help string, labels ...string) Metric {
		return Metric{Name: name, Kind: Gauge, Unit: unit, Labels: labels, Space: true, Help: help}
	}
	return []Metric{
		g(MetricJobs, "{job}", "Jobs that are open or quarantined; of each flow and state at most 100 000 are counted.", "flow", "state"),
		g(MetricKept, "{job}", "Closed jobs that are still there, by how they ended: an estimate from 256 pages of their table. What is common is right to about a fifth, what is rare may be missing.", "flow", "state"),
		g(MetricDeadOpen, "{letter}", "Dead letters that wait for a person; at most 10 000 are counted.", "reason"),
		g(MetricOverdue, "{row}", "Dispatch rows that are due and were not sent yet; at most 10 000 are counted."),
		g(MetricOverdueAge, "s", "How long the oldest of them has been due."),
		g(MetricTimersLate, "{timer}", "Timers among them."),
		g(MetricTimersLateAge, "s", "How late the oldest of these timers is."),
		g(MetricQueued, "{request}", "Requests in the queue of the topic that no process has taken.", "topic"),
		g(MetricOldest, "s", "How long the oldest of them has been there; of the 50 fullest topics.", "topic"),
		g(MetricRunning, "{request}", "Requests that a process holds.", "topic"),
		g(MetricLanesUnpulled, "{lane}", "Lanes from which no engine pulls."),
		g(MetricStreamFill, "1", "The part of a stream's bytes that is taken, by queue: lane, start, work; none without a limit.", "queue"),
		g(MetricSessions, "{process}", "Processes that live, by role; one with several roles counts in each.", "role"),
		g(MetricRetention, "{job}", "Jobs and tombstones whose time has passed and that are still there; at most 10 000 are counted."),
		g(MetricRetentionBehind, "s", "For how long the time of the oldest of them has passed."),
	}
}
