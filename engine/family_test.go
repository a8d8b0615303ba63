package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

const child = `
flow: child
version: "1"
input: {type: object, required: [n]}
output: {n: "${ work.output.n }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: fail, input: {n: "${ start.output.n }", Code: "${ start.output.code }"}, retry: {attempts: 1}}
transitions: {start: [work]}
`

// P6: redelivered awaits and starts still start one child.
func TestP6AwaitStartsOneChild(t *testing.T) {
	scenario(t, func(r *rig) {
		r.deploy(child)
		r.deploy(`
flow: parent
version: "1"
output: {n: "${ ask.output.n }", id: "${ send.output.id }"}
activities:
  start: {type: trigger}
  ask: {type: await, flow: child, input: {n: 3, code: 0}}
  send: {type: await, flow: child, id: "sent-by-${ job.id }", await: false, input: {n: 4, code: 0}}
transitions: {start: [ask, send]}
`)
		var ids []journal.JobID
		for n := range 5 {
			ids = append(ids, r.run("parent", fmt.Sprint("p", n), `{}`))
		}
		for n, id := range ids {
			r.output(id, fmt.Sprintf(`{"n":3,"id":"sent-by-p%d"}`, n))
			sent := r.find(fmt.Sprint("sent-by-p", n))
			r.output(sent, `{"n":4}`)
			require.Equal(r.t, id, r.view(sent).Parent.Job)
		}
		counts, err := r.store.Counts(context.Background())
		require.NoError(r.t, err)
		require.Equal(r.t, map[journal.JobState]int64{journal.JobCompleted: 15}, counts)
	})
}

// 1.11: a refused start is answered with an outcome.
func TestAwaitOfWhatCannotBegin(t *testing.T) {
	scenario(t, func(r *rig) {
		r.deploy(child)
		for _, await := range []bool{true, false} {
			r.deploy(fmt.Sprintf(`
flow: parent_%[1]t
version: "1"
activities:
  start: {type: trigger}
  ask: {type: await, await: %[1]t, flow: "${ start.output.flow }", id: "${ start.output.id }", input: "${ start.output.input }"}
transitions: {start: [ask]}
`, await))
		}
		taken := r.run("child", "taken", `{"n":1,"code":0}`)
		for name, c := range map[string]struct {
			input string
			code  int
			text  string
		}{
			"unknown flow":  {`{"flow":"nobody","id":"a","input":{}}`, 404, "nobody"},
			"refused input": {`{"flow":"child","id":"b","input":{}}`, 400, "n"},
			"foreign key":   {`{"flow":"child","id":"taken","input":{"n":1}}`, 409, "taken"},
		} {
			for _, parent := range []string{"parent_true", "parent_false"} {
				id := r.run(parent, parent+name, c.input)
				r.failed(id, journal.JobFailed, c.code, c.text)
			}
		}
		r.output(taken, `{"n":1}`)
	})
}

// The input of a further child may fail to evaluate although the first child's did not, because
// a branch that the join did not wait for has ended since. That is an error of the await, not a
// broken job (J1).
func TestAwaitRetryThatCannotBeOrdered(t *testing.T) {
	scenario(t, func(r *rig) {
		r.deploy(child)
		r.deploy(`
flow: parent
version: "1"
activities:
  start: {type: trigger}
  fast: {type: hook, input: 1}
  slow: {type: hook, sleep: 5s, output: {w: 1}}
  any: {type: hook, join: any, input: 1}
  ask: {type: await, flow: child, input: {n: "${ slow.skipped ? 1 : slow.output.v }", code: 409}, retry: {attempts: 3, backoff: 20s}}
transitions:
  start: [fast, slow]
  fast: [any]
  slow: [any]
  any: [ask]
`)
		r.failed(r.run("parent", "p", `{}`), journal.JobFailed, 500, "no such key: v")
	})
}

// P8: an interrupt of its own job that is the only open obligation closes the job.
func TestP8OwnInterruptCloses(t *testing.T) {
	scenario(t, func(r *rig) {
		r.deploy(`
flow: stop
version: "1"
output: {n: 1}
activities:
  start: {type: trigger}
  stop: {type: interrupt, code: 409, reason: "not ${ job.id }"}
  well: {type: interrupt, throw: false}
transitions: {start: [{to: stop, when: "start.output.throw"}, {to: well, when: "!start.output.throw"}]}
`)
		r.failed(r.run("stop", "k", `{"throw":true}`), journal.JobInterrupted, 409, "not k")
		r.output(r.run("stop", "l", `{"throw":false}`), `{"n":1}`)
	})
}

// stopped is an interrupt from outside.
var stopped = collation.InterruptOrder{Code: 410, Reason: "enough", Throw: true}
