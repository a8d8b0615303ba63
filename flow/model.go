package flow

import (
	"encoding/hex"
	"time"

	"github.com/quipu-journal/quipu/flow/internal/expr"
	"github.com/quipu-journal/quipu/flow/internal/schema"
)

// Digest is the SHA-256 of a flow's canonical form.
type Digest [32]byte

// String returns the digest in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Type is what an activity is (spec 1.11).
type Type string

// The types of activities.
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
	expire        time.Duration // 0: not given
	canonical     []byte
	digest        Digest
	schema        *schema.Schema
	output        *expr.Template
	outputNeeds   []string
	warnings      Faults
	schedule      *Schedule
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
func (f *Flow) Expire() time.Duration { return max(f.expire, 0) }

// KeptFor returns the flow with the space's default d for Expire, if the definition gives
// none; 0 means for good. The definition does not change.
func (f *Flow) KeptFor(d time.Duration) *Flow {
	if f.expire != 0 || d == 0 {
		return f
	}
	kept := *f
	kept.expire = d
	return &kept
}

// never spells Never in a definition.
const never = "never"

func expireText(d time.Duration) string {
	if d == Never {
		return never
	}
	return d.String()
}

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
	// Type is what the activity is.
	Type Type
	// Index is the place in Flow.Activities: breadth first from the trigger, which has 0,
	// in the order of transitions.
	Index int
	// Topic is the topic of a worker's requests, or of the signal of a hook or a signal
	// activity.
	Topic string
	// Retry is the retry policy of a worker or an await, with defaults filled in
	// (E8).
	Retry Retry
	// Timeout bounds one attempt of a worker; Within the time from dispatch to
	// ending response of a worker, an await or a waiting hook (E9). 0 means no
	// bound.
	Timeout, Within time.Duration
	// Class is pure, tx, idempotent, guarded or empty. It is a note by the author; only
	// the handler's registration counts (E3).
	Class string
	// Depth is the number of dominators above; an address of the activity has Depth + 1
	// segments (1.9).
	Depth int
	// Parent is the immediate dominator; in a tree that is the source of the only
	// incoming transition. It is nil for the trigger.
	Parent *Activity
	// Join is how several incoming transitions meet; empty if there is only one (1.10).
	Join Join
	// Pivot marks a pass-through hook that a cycle goes back to (1.11).
	Pivot bool
	// LeadsToJoin says that the activity leads to a join; only then must the engine pass
	// on that it was skipped.
	LeadsToJoin bool
	// HasEach says that a worker sends one request for each element of a list. Parallel
	// bounds the elements under way at once; Collect puts their errors into the output
	// instead of failing.
	HasEach  bool
	Parallel int
	Collect  bool
	// Awaited says that an await waits for its child's outcome.
	Awaited bool
	// HasSleep and Topic (of its signal) say what a hook waits for; with neither it
	// passes through. Repeat makes every signal a pass. MaxAge bounds the age of a signal
	// that came before the hook waited; 0: any age.
	HasSleep bool
	Repeat   bool
	MaxAge   time.Duration
	// To is the pivot of a cycle, Max bounds its passes.
	To  *Activity
	Max int
	// All says that a signal activity's signal goes to every open wait.
	All bool
	// HasTarget says that an interrupt names another job. With Throw it ends the job as
	// interrupted, otherwise as completed; with Descend it also interrupts the children
	// that the target awaits.
	HasTarget, Throw, Descend bool
	// Out and In are the transitions, Out in the order of the definition.
	Out, In []*Transition

	input, output        *expr.Template
	inputNeeds, mapNeeds []string
	each                 *expr.Program
	eachSource           string
	values               map[string]*expr.Template // the other keys of its type
	enter, leave         int                       // interval in the dominator tree; it contains those below
}

// Transition is an edge of a flow. Its fields are read only.
type Transition struct {
	// From and To are its ends.
	From, To *Activity
	// OnError transitions are taken on an error response, all others on success (E11).
	// The caller checks that; Taken only evaluates the condition.
	OnError bool

	when       *expr.Program
	whenSource string
	needs      []string
}

// Retry is a retry policy (E8): the wait after the n-th failed attempt is Backoff ×
// Factorⁿ⁻¹, at most Max, of which the part Jitter is random. As an option of a builder,
// a zero field means the default and a negative Jitter none.
type Retry struct {
	// Attempts is the total number of attempts, 1…MaxAttempts; default 3, for an await 1.
	Attempts int
	// Backoff is the wait after the first failed attempt; default 1s.
	Backoff time.Duration
	// Factor multiplies the wait from attempt to attempt, 1…MaxFactor; default 2.
	Factor float64
	// Max bounds the wait; default 1m, or Backoff if that is longer.
	Max time.Duration
	// Jitter is the part of the wait that is random, 0…1; default 0.2.
	Jitter float64
}

// Join is how several incoming transitions meet (1.10).
type Join string

// JoinAll runs the activity when all transitions are decided and one is taken, JoinAny at
// the first that is taken.
const (
	JoinAll Join = "all"
	JoinAny Join = "any"
)

// PassThrough reports a hook that waits for nothing.
func (a *Activity) PassThrough() bool { return a.Type == TypeHook && !a.HasSleep && a.Topic == "" }

// Passes reports whether every entry of the activity is a pass with its own index: a
// pivot, or a repeating hook (C6).
func (a *Activity) Passes() bool { return a.Pivot || a.Repeat }

// Dominates reports whether every path from the trigger to b leads through a, or a is b.
func (a *Activity) Dominates(b *Activity) bool { return a.enter <= b.enter && b.leave <= a.leave }

// Schedule starts jobs by the clock.
type Schedule struct {
	// Cron has five fields: minute, hour, day of the month, month, day of the week. Zone
	// is an IANA time zone, UTC by default.
	Cron, Zone string
	// CatchUp says what happens with times that passed while no process looked: none, one
	// (the latest) or all start a job.
	CatchUp CatchUp
	// Input is the canonical input of the jobs.
	Input []byte
}

// CatchUp is a policy for missed times.
type CatchUp string

// The policies of catching up.
const (
	CatchUpNone CatchUp = "none"
	CatchUpOne  CatchUp = "one"
	CatchUpAll  CatchUp = "all"
)
