package flow

import (
	"time"

	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// Limits of a definition. What is beyond one is a fault that names it.
const (
	// MaxDefinitionBytes is the size of a flow file and of a canonical form.
	MaxDefinitionBytes = 8 << 20
	// MaxActivities is the number of activities of a flow.
	MaxActivities = 20_000
	// MaxNodes is the number of values in a flow file, aliases counted as what
	// they stand for.
	MaxNodes = 1_000_000
	// MaxName is the length of the names of flows and activities.
	MaxName = 64
	// MaxVersion is the length of a version. That of a built-in flow is a topic.
	MaxVersion = MaxTopic
	// MaxTopic is the length of a topic.
	MaxTopic = 128
	// MaxOut is the number of transitions that leave one activity.
	MaxOut = 1000
	// MaxIn is the number of transitions that meet in one join (C4).
	MaxIn = 99
	// MaxElements is the number of elements of the list of an `each`.
	MaxElements = 10_000
	// DefaultParallel is the number of elements that are under way at once.
	DefaultParallel = 100
	// MaxPasses is the number of passes that a cycle may allow: an activity
	// counts its Leg2 entries in eight digits, and the pivot's own is one (1.2).
	MaxPasses = 99_999_998
	// DefaultPasses is the number of passes of a cycle that names none.
	DefaultPasses = 10_000
	// MaxSignalKey is the length of the key of a signal, in bytes.
	MaxSignalKey = 512
	// MaxJobKey is the length of the key of a job, in bytes.
	MaxJobKey = 512
	// MaxReason is the length of the reason of an interrupt, in bytes.
	MaxReason = 4 << 10
	// MaxSleep is the longest sleep of a hook, ten years.
	MaxSleep = 87600 * time.Hour
	// MaxAttempts is the number of attempts that a retry policy may allow (E8).
	MaxAttempts = 1000
	// MaxFactor is the largest backoff factor.
	MaxFactor = 100
	// MinDuration is the shortest backoff, timeout and within.
	MinDuration = time.Millisecond
	// MaxDuration is the longest backoff, timeout and within.
	MaxDuration = 8760 * time.Hour
	// Never says that closed jobs are kept for good.
	Never time.Duration = -1
	// MinExpire and MaxExpire bound how long a closed job is kept.
	MinExpire = time.Second
	// MaxExpire is ten years.
	MaxExpire = 87600 * time.Hour
	// MaxFaults is the number of faults that one report lists.
	MaxFaults = 1000
	// MaxExpression is the length of an expression in bytes.
	MaxExpression = expr.MaxBytes
	// MaxMentions is how many different fields one expression may mention.
	MaxMentions = expr.MaxMentions
	// MaxCost bounds the work of one evaluation, in the units of CEL.
	MaxCost = expr.MaxCost
	// MaxMappedBytes is the size of an evaluated input or output.
	MaxMappedBytes = expr.MaxResultBytes
)

// DefaultRetry is the retry policy of a worker that names none (E8).
var DefaultRetry = Retry{Attempts: 3, Backoff: time.Second, Factor: 2, Max: time.Minute, Jitter: 0.2}

// DefaultAwaitRetry is the retry policy of an await that names none: its child
// has retries of its own.
var DefaultAwaitRetry = Retry{Attempts: 1, Backoff: time.Second, Factor: 2, Max: time.Minute, Jitter: 0.2}
