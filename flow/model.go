package flow

import (
	"encoding/hex"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// Digest is the SHA-256 of a flow's canonical form.
type Digest [32]byte

// String returns the digest in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Type is what an activity is (spec 1.11).
type Type string

// The types of activities. This build runs triggers and workers; a flow with
// one of the others is refused with a fault that says so.
const (
	TypeTrigger   Type = "trigger"
	TypeWorker    Type = "worker"
	TypeAwait     Type = "await"
	TypeHook      Type = "hook"
	TypeSignal    Type = "signal"
	TypeCycle     Type = "cycle"
	TypeInterrupt Type = "interrupt"
)

// Identity says where the key of a job comes from (E16).
type Identity string

// The identities of a flow.
const (
	// Caller takes the key that the caller gives; a start without one is refused.
	Caller Identity = "caller"
	// Strict derives the key from the flow and the canonical input, see [Flow.StrictKey].
	Strict Identity = "strict"
)

// Flow is a validated, compiled definition. It is immutable and safe for
// concurrent use.
type Flow struct {
	name, version string
	identity      Identity
	expire        time.Duration
	canonical     []byte
	digest        Digest
	schema        *jsonschema.Schema
	output        *expr.Template
	outputNeeds   []string
	trigger       *Activity
	activities    []*Activity
	byName        map[string]*Activity
}

// Name returns the flow's name.
func (f *Flow) Name() string { return f.name }

// Version returns the flow's version, a label without an order.
func (f *Flow) Version() string { return f.version }

// Digest returns the SHA-256 of Canonical.
func (f *Flow) Digest() Digest { return f.digest }

// Canonical returns the canonical form, canonical JSON that FromCanonical and
// Parse read. The caller must not change it.
func (f *Flow) Canonical() []byte { return f.canonical }

// Identity says where the keys of the flow's jobs come from (E16).
func (f *Flow) Identity() Identity { return f.identity }

// Expire is how long a closed job is kept; 0 means for good.
func (f *Flow) Expire() time.Duration { return f.expire }

// Trigger returns the root of the graph.
func (f *Flow) Trigger() *Activity { return f.trigger }

// Activity looks an activity up by name.
func (f *Flow) Activity(name string) (*Activity, bool) {
	a, ok := f.byName[name]
	return a, ok
}

// Activities returns all activities in the order of Activity.Index. The caller
// must not change the slice.
func (f *Flow) Activities() []*Activity { return f.activities }

// Activity is a node of a flow. Its fields are read only.
type Activity struct {
	// Name is unique in the flow.
	Name string
	// Type is trigger or worker in this build.
	Type Type
	// Index is the place in Flow.Activities: breadth first from the trigger,
	// which is 0, along the order of transitions.
	Index int
	// Topic is where the requests of a worker go.
	Topic string
	// Retry is the retry policy of a worker, with defaults filled in (E8).
	Retry Retry
	// Timeout bounds one try of a worker, Within the time from dispatch to
	// ending response (E9). 0 means no bound.
	Timeout, Within time.Duration
	// Class is pure, tx, idempotent or guarded; empty leaves it to the
	// handler's registration (E3).
	Class string
	// Depth is the number of transitions from the trigger.
	Depth int
	// Parent is the immediate dominator: in a tree, where the only incoming
	// transition comes from. It is nil for the trigger.
	Parent *Activity
	// Out and In are the transitions, Out in the order of the definition.
	Out, In []*Transition

	input        *expr.Template
	inputNeeds   []string
	enter, leave int // an ancestor's interval holds that of its descendants
}

// above says that a is an ancestor of b, or b itself.
func (a *Activity) above(b *Activity) bool { return a.enter <= b.enter && b.leave <= a.leave }

// Transition is an edge of a flow. Its fields are read only.
type Transition struct {
	// From and To are its ends.
	From, To *Activity
	// OnError transitions are taken on an error response, all others on
	// success; the caller decides that, Taken evaluates the condition only (E11).
	OnError bool

	when       *expr.Program
	whenSource string
	needs      []string
}

// Retry is a retry policy (E8): the wait after the n-th failed try is Backoff ×
// Factorⁿ⁻¹, at most Max, give or take Jitter of itself. As an option of a
// builder, a zero field means the default and a negative Jitter none.
type Retry struct {
	// Attempts is the number of tries in all, 1…MaxAttempts; default 3.
	Attempts int
	// Backoff is the wait after the first failed try; default 1s.
	Backoff time.Duration
	// Factor multiplies the wait from try to try, 1…MaxFactor; default 2.
	Factor float64
	// Max bounds the wait; default 1m, or Backoff if that is longer.
	Max time.Duration
	// Jitter is the part of the wait that is random, 0…1; default 0.2.
	Jitter float64
}
