package replaytest

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Choose returns a number from 0 to n − 1; the source of all that is random.
type Choose func(n int) int

// maxPlans bounds a family that goes on until nothing is left to do.
const maxPlans = 2000

// Options say which journal to make.
type Options struct {
	Key        string // default "job"
	Input      string // canonical; default {"n":1}, with Every some lists beside it
	Mode       collation.Mode
	Choose     Choose // default: always 0
	Activities int    // workers in the tree; their order and parents are chosen
	// Chain makes the tree a single path, and every worker succeed at once
	// unless chosen otherwise.
	Chain bool
	// Every makes a flow of all types of activities instead of a tree, with about
	// that many of them, and jobs that it starts, signals and interrupts.
	Every bool
	// Flow is run instead, if set; Others are the flows that its awaits may start.
	Flow   *flow.Flow
	Others []*flow.Flow
	// Trouble lets workers fail, be parked, and messages come twice or alone;
	// with Every, children be refused, and signals and interrupts come from outside.
	Trouble bool
	// Effects lets workers record effects.
	Effects bool
	// Functions makes some workers of Every durable functions: they suspend until
	// timers, signals and children have come, and, with Effects, register
	// compensations.
	Functions bool
	// Steps stops after that many plans; 0 goes on until nothing is left to do, at
	// most 2000: loops in loops can take very many.
	Steps int
	// Respond, if set, gives the response instead of choice; nil: choose.
	Respond func(activity string, turn int) *journal.Response
	// Signal, if set, gives the code of a signal to a hook that nothing else would
	// wake; 0, and without it: choose.
	Signal func(activity string, number int) int
	// Payloads are outputs that Respond names by their digests (E6).
	Payloads map[journal.Digest][]byte

	silent bool // no worker answers: somebody else does
}

// Honest makes the journal of one job as the protocol writes it.
func Honest(o Options) *Journal { return Family(o)[0] }

// Family makes the journals of one job, first, and of all that it started.
func Family(o Options) []*Journal {
	if o.Key == "" {
		o.Key = "job"
	}
	if o.Choose == nil {
		o.Choose = func(int) int { return 0 }
	}
	if o.Steps == 0 {
		o.Steps = maxPlans
	}
	switch {
	case o.Flow != nil:
	case o.Every:
		o.Flow = Mixed(o)
		o.Others = Children(o)
	default:
		o.Flow = Tree(o)
	}
	u := newUniverse(o)
	for range o.Steps {
		if len(u.inbox) == 0 && !u.wake() {
			break
		}
		u.order()
		u.turn(u.o.Choose(len(u.inbox)))
	}
	out := make([]*Journal, len(u.born))
	for i, id := range u.born {
		out[i] = u.journal(id)
	}
	return out
}

// Tree builds the flow of Honest.
func Tree(o Options) *flow.Flow {
	b := flow.New("tree").Version("1").Trigger("t")
	names := []string{"t"}
	for i := range o.Activities {
		name := fmt.Sprintf("w%d", i+1)
		retry := flow.Retry{Attempts: 1 + o.Choose(3), Backoff: 1e9, Factor: 2, Max: 60e9}
		if o.Trouble && o.Choose(8) == 0 {
			b.Worker(name, "work", retry, flow.Input(map[string]string{"x": "${ t.output.missing }"}))
		} else {
			b.Worker(name, "work", retry)
		}
		parent := names[o.Choose(len(names))]
		if o.Chain {
			parent = names[len(names)-1]
		}
		if o.Trouble && o.Choose(4) == 0 && parent != "t" {
			b.Transition(parent, name, flow.OnError())
		} else {
			b.Transition(parent, name)
		}
		names = append(names, name)
	}
	return built(b.Build())
}

func built(f *flow.Flow, err error) *flow.Flow {
	if err != nil {
		panic(err) // valid by construction
	}
	return f
}
