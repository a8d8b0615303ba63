package spans

// The parts of a tree: the first word of a span's name.
const (
	PartJob      = "job"
	PartActivity = "activity"
	PartDispatch = "dispatch"
	PartStart    = "start"    // the trigger's message
	PartResponse = "response" // of a handler, or the answer of an activity that sends no request
	PartWakeUp   = "wakeup"
	PartOutcome  = "outcome" // of a child
	PartCycle    = "cycle"
	PartLate     = "late" // a stale message
	PartStep     = "step"
	PartAttempt  = "attempt"
	PartQueued   = "queued"
	PartRun      = "run"
	PartEffect   = "effect"
	PartBackoff  = "backoff"
	PartWait     = "wait"
	PartChild    = "child"
	PartParked   = "parked"
	PartSend     = "send" // of a signal or an interrupt
)
