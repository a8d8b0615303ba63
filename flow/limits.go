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
	// MaxVersion is the length of a version.
	MaxVersion = 64
	// MaxTopic is the length of a topic.
	MaxTopic = 128
	// MaxOut is the number of transitions that leave one activity.
	MaxOut = 1000
	// MaxAttempts is the number of tries that a retry policy may allow (E8).
	MaxAttempts = 1000
	// MaxFactor is the largest backoff factor.
	MaxFactor = 100
	// MinDuration is the shortest backoff, timeout and within.
	MinDuration = time.Millisecond
	// MaxDuration is the longest backoff, timeout and within.
	MaxDuration = 8760 * time.Hour
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
