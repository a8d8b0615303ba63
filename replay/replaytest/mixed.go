package replaytest

import (
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/flow"
)

// topics and keys are those that the hooks and signals of Mixed share.
var (
	topics = []string{"go", "paid"}
	keys   = []string{"k1", "k2"}
)

// victim is the key of a job beside that of Mixed, which may interrupt it.
const victim = "victim"

// Children builds the flows that awaits of Mixed start: one that works, one that
// waits for a signal or a time, and one with a child of its own.
func Children(o Options) []*flow.Flow {
	return []*flow.Flow{
		built(flow.New("child").Version("1").Trigger("t").
			Worker("w", "work", flow.Retry{Attempts: 1 + o.Choose(2), Backoff: 1e9}).Transition("t", "w").
			Output("${ w.output }").Build()),
		built(flow.New("patient").Version("1").Trigger("t").
			Hook("h", flow.WaitFor(topics[0], keys[0]), flow.Sleep("24h")).Transition("t", "h").Build()),
		built(flow.New("parent").Version("1").Trigger("t").
			Await("a", "child", flow.Retry{Attempts: 2, Backoff: 1e9}, flow.Within(time.Hour)).Transition("t", "a").Build()),
	}
}

// Mixed builds a flow of all types of activities: sequences, branches that meet
// again, loops, and hooks that repeat, each in each, as deep as the number of
// activities allows.
func Mixed(o Options) *flow.Flow {
	m := &maker{b: flow.New("mixed").Version("1").Trigger("t"), o: o, left: max(o.Activities, 1)}
	end := "t"
	for m.left > 0 {
		end = m.block(end, false)
	}
	m.b.Output("${ {'all': true} }")
	return built(m.b.Build())
}

// maker adds activities to a flow until none is left.
type maker struct {
	b    *flow.Builder
	o    Options
	left int
	n    int
}

func (m *maker) name(kind string) string {
	m.n++
	m.left--
	return fmt.Sprintf("%s%d", kind, m.n)
}

// any chooses one of the texts.
func (m *maker) any(list []string) string { return list[m.o.Choose(len(list))] }

// block adds one activity, or some, after from, and returns the last. Between a
// branching and its join there is no loop.
func (m *maker) block(from string, branched bool, how ...flow.TransitionOption) string {
	choice := m.o.Choose(10)
	switch {
	case m.left >= 4 && choice < 3:
		return m.fork(from, branched, how...)
	case !branched && m.left >= 4 && choice < 5:
		return m.loop(from, how...)
	case !branched && choice == 5:
		return m.then(from, m.repeating(), how...)
	}
	return m.then(from, m.leaf(), how...)
}

// then lets an activity follow; in trouble, an error of it is taken by another,
// or ends the job.
func (m *maker) then(from, name string, how ...flow.TransitionOption) string {
	m.b.Transition(from, name, how...)
	if m.o.Trouble && m.o.Choose(3) > 0 {
		handler := m.name("rescue")
		if m.o.Choose(4) == 0 {
			m.b.Interrupt(handler, flow.Code(500), flow.Reason("${ "+name+".error.message }"), flow.Descend())
		} else {
			m.b.Worker(handler, "work")
		}
		m.b.Transition(name, handler, flow.OnError())
	}
	return name
}

// fork branches, lets the branches meet, and returns the join. One branch may
// not be taken; there may be a way around them all.
func (m *maker) fork(from string, branched bool, how ...flow.TransitionOption) string {
	fork := m.name("fork")
	m.b.Worker(fork, "work")
	m.b.Transition(from, fork, how...)
	join := m.name("join")
	policy := []flow.Join{flow.JoinAll, flow.JoinAny}[m.o.Choose(2)]
	m.joins(join, policy)
	for n := range 2 {
		var when []flow.TransitionOption
		if n == 1 && m.o.Choose(2) == 1 {
			when = append(when, flow.When(fork+".output.again"))
		}
		end := m.block(fork, true, when...)
		for m.left > 2 && m.o.Choose(3) == 0 {
			end = m.block(end, true)
		}
		m.b.Transition(end, join)
	}
	if m.o.Choose(3) == 0 {
		m.b.Transition(fork, join, flow.When("!"+fork+".output.again"))
	}
	return join
}

// joins adds the activity of a join.
func (m *maker) joins(name string, policy flow.Join) {
	switch m.o.Choose(4) {
	case 0:
		m.b.Hook(name, policy)
	case 1:
		m.b.Hook(name, policy, flow.Sleep("1h"))
	default:
		m.b.Worker(name, "work", policy)
	}
}

// loop repeats what is in it as long as its last worker says so.
func (m *maker) loop(from string, how ...flow.TransitionOption) string {
	pivot := m.name("pivot")
	m.b.Hook(pivot, flow.Input(map[string]int{"n": 0}))
	m.b.Transition(from, pivot, how...)
	end := m.block(pivot, false)
	last, again, next := m.name("last"), m.name("again"), m.name("next")
	m.b.Worker(last, "work")
	m.b.Transition(end, last)
	m.b.Cycle(again, pivot, flow.Max(1+m.o.Choose(4)), flow.Input(map[string]string{"n": "${ " + pivot + ".output.n + 1 }"}))
	m.b.Hook(next, flow.Input("${ "+last+".output }"))
	m.b.Transition(last, again, flow.When(last+".output.again"))
	m.b.Transition(last, next, flow.When("!"+last+".output.again"))
	return next
}

// repeating adds a hook whose signals are passes.
func (m *maker) repeating() string {
	name := m.name("ticks")
	options := []flow.ActivityOption{flow.WaitFor(m.any(topics), m.any(keys)), flow.Repeat(), flow.Output("${ signal }")}
	if m.o.Choose(3) == 0 {
		options = append(options, flow.Sleep("48h"))
	}
	if m.o.Choose(4) == 0 {
		options = append(options, flow.Within(96*time.Hour))
	}
	m.b.Hook(name, options...)
	return name
}

// leaf adds one activity of any type.
func (m *maker) leaf() string {
	retry := flow.Retry{Attempts: 1 + m.o.Choose(3), Backoff: 1e9, Factor: 2, Max: 60e9}
	switch m.o.Choose(16) {
	case 0, 1:
		return m.each(retry)
	case 2, 3:
		name := m.name("await")
		flows := []string{"child", "patient", "parent", "nobody"}
		if !m.o.Trouble {
			flows = flows[:3]
		}
		m.b.Await(name, m.any(flows), retry, flow.Input("${ t.output }"))
		return name
	case 4:
		name := m.name("await")
		m.b.Await(name, "child", flow.Detached(), flow.Within(time.Hour), flow.Output("${ "+name+".output.id }"))
		return name
	case 5:
		name := m.name("await")
		m.b.Await(name, "patient", retry, flow.Within(72*time.Hour))
		return name
	case 6, 7:
		return m.hook()
	case 8:
		name := m.name("tell")
		m.b.Signal(name, m.any(topics), m.any(keys), flow.Payload(map[string]string{"n": "${ t.output.n }"}), flow.Code(200+2*m.o.Choose(2)))
		return name
	case 9:
		name := m.name("tell")
		m.b.Signal(name, m.any(topics), m.any(keys), flow.ToAll())
		return name
	case 10:
		name := m.name("pass")
		m.b.Hook(name, flow.Input("${ t.output.n }"))
		return name
	case 11:
		return m.interrupt()
	case 12:
		name := m.name("mapped")
		turn := name + ".output.turn"
		if m.o.Trouble && m.o.Choose(3) == 0 {
			turn = name + ".output.missing.turn"
		}
		m.b.Worker(name, "work", retry, flow.Output(map[string]string{"turn": "${ " + turn + " }"}))
		return name
	}
	name, topic := m.name("work"), "work"
	if m.o.Functions {
		topic = FunctionTopic
	}
	m.b.Worker(name, topic, retry, flow.Within(time.Minute))
	return name
}

func (m *maker) each(retry flow.Retry) string {
	name := m.name("each")
	options := []flow.ActivityOption{
		flow.Each([]string{"t.output.list", "t.output.list", "t.output.none"}[m.o.Choose(3)]), retry,
		flow.Parallel(1 + m.o.Choose(4)), flow.Input(map[string]string{"i": "${ index }", "x": "${ item }"}),
	}
	if m.o.Choose(2) == 0 {
		options = append(options, flow.CollectErrors())
	}
	if m.o.Choose(3) == 0 {
		options = append(options, flow.Within(time.Minute))
	}
	topic := "work"
	if m.o.Functions && m.o.Choose(2) == 0 {
		topic = FunctionTopic
	}
	m.b.Worker(name, topic, options...)
	return name
}

func (m *maker) hook() string {
	name := m.name("hook")
	var options []flow.ActivityOption
	choice := m.o.Choose(5)
	if choice != 0 {
		options = append(options, flow.WaitFor(m.any(topics), m.any(keys)))
	}
	if choice < 3 {
		options = append(options, flow.Sleep("24h"))
	}
	if choice == 4 {
		options = append(options, flow.Within(12*time.Hour))
	}
	if m.o.Choose(3) == 0 {
		options = append(options, flow.Output(map[string]string{"by": "${ " + name + ".by }"}))
	}
	m.b.Hook(name, options...)
	return name
}

// interrupt adds one of another job: of a child, or of none.
func (m *maker) interrupt() string {
	name := m.name("stop")
	m.b.Interrupt(name, flow.Target(m.any([]string{"nobody", victim})), flow.Code(409), flow.Descend())
	return name
}
