package flow

import (
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// Limits of a definition. Exceeding one is a fault that names it.
const (
	// MaxDefinitionBytes bounds a flow file and a canonical form.
	MaxDefinitionBytes = 8 << 20
	// MaxActivities bounds the activities of a flow.
	MaxActivities = 20_000
	// MaxNodes bounds the values in a flow file; an alias counts as a copy of its anchor.
	MaxNodes = 1_000_000
	// MaxName bounds the names of flows and activities, in bytes.
	MaxName = 64
	// MaxVersion bounds a version, in bytes. It is MaxTopic because the version of a
	// built-in flow is a topic.
	MaxVersion = MaxTopic
	// MaxTopic bounds a topic, in bytes.
	MaxTopic = 128
	// MaxOut bounds the transitions that leave one activity.
	MaxOut = 1000
	// MaxIn bounds the transitions that meet in one join (C4).
	MaxIn = 99
	// MaxElements bounds the list of an `each`.
	MaxElements = 10_000
	// DefaultParallel is the default number of elements that are under way at once.
	DefaultParallel = 100
	// MaxPasses bounds the passes of a cycle: an activity counts its Leg2 entries in
	// eight digits, and one is the pivot's own (1.2).
	MaxPasses = 99_999_998
	// DefaultPasses is the default for the passes of a cycle.
	DefaultPasses = 10_000
	// MaxSignalKey bounds the key of a signal, in bytes.
	MaxSignalKey = 512
	// MaxJobKey bounds the key of a job, in bytes.
	MaxJobKey = 512
	// MaxReason bounds the reason of an interrupt, in bytes.
	MaxReason = 4 << 10
	// MaxSleep bounds the sleep of a hook: ten years.
	MaxSleep = 87600 * time.Hour
	// MaxAttempts bounds the attempts of a retry policy (E8).
	MaxAttempts = 1000
	// MaxFactor bounds the backoff factor.
	MaxFactor = 100
	// MinDuration is the shortest backoff, timeout and within.
	MinDuration = time.Millisecond
	// MaxDuration is the longest backoff, timeout and within.
	MaxDuration = 8760 * time.Hour
	// Never says that closed jobs are kept for good.
	Never time.Duration = -1
	// MinExpire is the shortest time for which a closed job is kept.
	MinExpire = time.Second
	// MaxExpire is the longest time for which a closed job is kept: ten years.
	MaxExpire = 87600 * time.Hour
	// MaxFaults bounds the faults that one report lists.
	MaxFaults = 1000
	// MaxExpression bounds an expression, in bytes.
	MaxExpression = expr.MaxBytes
	// MaxMentions bounds the different fields that one expression mentions.
	MaxMentions = expr.MaxMentions
	// MaxNesting bounds how deep lists, objects and macros stand in each other in an expression.
	MaxNesting = expr.MaxNesting
	// MaxStepCost bounds the work of one step, in units: the expressions of one Leg1 with all its
	// elements, those of one Leg2, one mapped output, or the check of an input. A unit is about
	// 50 ns of one core and at most about 100 bytes of memory.
	MaxStepCost = 4_000_000
	// MaxMappedBytes bounds an evaluated input or output.
	MaxMappedBytes = expr.MaxResultBytes
)

// DefaultRetry is the retry policy of a worker without one (E8).
var DefaultRetry = Retry{Attempts: 3, Backoff: time.Second, Factor: 2, Max: time.Minute, Jitter: 0.2}

// DefaultAwaitRetry is the retry policy of an await without one: a single attempt,
// because the child has its own retries.
var DefaultAwaitRetry = Retry{Attempts: 1, Backoff: time.Second, Factor: 2, Max: time.Minute, Jitter: 0.2}

// CheckTopic says why no flow can name the topic, of a worker or a signal; nil: one can.
func CheckTopic(topic string) error {
	switch {
	case len(topic) > MaxTopic:
		return fmt.Errorf("a topic of %d bytes, the limit is %d: %.40q…", len(topic), MaxTopic, topic)
	case !topicPattern.MatchString(topic):
		return fmt.Errorf("topic %q: it is parts of a-z, 0-9, _ and - joined by dots, as in a flow", topic)
	}
	return nil
}
