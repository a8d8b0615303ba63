package main

import (
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/flow"
)

// order is the input of every step.
var order = map[string]any{"order": "o-1", "amount": 42}

// built is a flow of the bench: one that is wrong is a mistake in this program.
func built(f *flow.Flow, err error) *flow.Flow {
	if err != nil {
		panic(err)
	}
	return f
}

// linear is a flow w<n> of n workers one after another.
func linear(n int) *flow.Flow { return inLine(fmt.Sprintf("w%d", n), "noop", n) }

// inLine is a flow of n workers of a topic one after another.
func inLine(flowName, topic string, n int) *flow.Flow {
	b := flow.New(flowName).Version("1").Trigger("start")
	last := "start"
	for i := range n {
		name := fmt.Sprintf("step_%d", i)
		b = b.Worker(name, topic, flow.Input(order)).Transition(last, name)
		last = name
	}
	return built(b.Build())
}

// fanOf is a flow of n workers of a topic at once.
func fanOf(flowName, topic string, n int) *flow.Flow {
	b := flow.New(flowName).Version("1").Trigger("start")
	for i := range n {
		name := fmt.Sprintf("step_%d", i)
		b = b.Worker(name, topic, flow.Input(order)).Transition("start", name)
	}
	return built(b.Build())
}

func parsed(text string) *flow.Flow { return built(flow.Parse("bench.yaml", []byte(text))) }

// one is a flow of a single activity.
func one(name, activity string) *flow.Flow {
	return parsed(fmt.Sprintf(`{flow: %s, version: "1", activities: {start: {type: trigger}, it: %s}, transitions: {start: [it]}}`, name, activity))
}

// awaiting is a flow that awaits ten jobs of another at once.
func awaiting(name, child string) *flow.Flow {
	var activities, to strings.Builder
	for i := range 10 {
		fmt.Fprintf(&activities, ", c%d: {type: await, flow: %s}", i, child)
		fmt.Fprintf(&to, ", c%d", i)
	}
	return parsed(fmt.Sprintf(`{flow: %s, version: "1", activities: {start: {type: trigger}%s}, transitions: {start: [%s]}}`,
		name, activities.String(), to.String()[2:]))
}
