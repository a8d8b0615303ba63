package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const parentFlow = `
flow: parent
version: "1"
activities:
  start: {type: trigger}
  pay: {type: await, flow: declined, id: "${ job.id }/pay"}
transitions: {start: [pay]}
`

const outputFlow = `
flow: badoutput
version: "1"
activities:
  start: {type: trigger}
  charge: {type: worker, topic: echo, input: {n: 1}}
  notify: {type: worker, topic: echo}
output: {id: "${ charge.output.id }"}
transitions: {start: [charge], charge: [notify]}
`

const panicFlow = `
flow: panics
version: "1"
activities:
  start: {type: trigger}
  step: {type: worker, topic: panics, retry: {attempts: 2, backoff: 1ms}}
transitions: {start: [step]}
`

const functionFlow = `
flow: function
version: "1"
activities:
  start: {type: trigger}
  book: {type: worker, topic: book}
transitions: {start: [book]}
`

// A durable function passes the failure of its child on, and why names the child.
func TestWhyOfAFunctionWhoseChildFailed(t *testing.T) {
	s := newSpace(t)
	s.deployText("declined", declined)
	s.deployText("function", functionFlow)
	s.ok("", "start", "function", "b1")
	s.fails(codeEnded, "", "wait", "b1", "--timeout", "1m")
	s.inOrder(s.ok("", "top", "--once"), "failed in the last hour: function 1, the last ", "s ago; declined 1, the last ", "quipu ls --state failed")
	require.Len(t, objects(t, s.ok("", "top", "--once", "-o", "json"))[0]["failing"], 2)
	s.inOrder(s.ok("", "ls"), "  WHY\n", "child \"pay\" of flow declined ended with error 402")
	said := s.ok("", "why", "b1")
	require.Contains(t, said, `by book, whose child (job "b1/pay") failed: child "pay" of flow declined ended with error 402`)
	s.inOrder(said, "    quipu why b1/pay\n", "    when that has completed:\n", "    quipu resume b1\n")
	require.NotContains(t, said, ",0")
	require.Contains(t, s.ok("", "why", "b1", "--digits"), "by book at ,0,0, whose child")
}

// What why offers for a failed job is what resume takes.
func TestWhyOfFailedJobs(t *testing.T) {
	s := newSpace(t)
	for name, text := range map[string]string{"declined": declined, "parent": parentFlow, "badoutput": outputFlow, "panics": panicFlow} {
		s.deployText(name, text)
	}
	s.ok("", "start", "parent", "f1")
	s.ok("", "start", "badoutput", "f2")
	s.ok("", "start", "panics", "f3")
	s.fails(codeEnded, "", "wait", "f1", "f2", "f3", "--timeout", "1m")

	said := s.ok("", "why", "f1")
	s.inOrder(said, "by pay, whose child (job \"f1/pay\") failed: declined\n", "    quipu why f1/pay\n",
		"    when that has completed:\n", "    quipu resume f1\n", "  (no transition of parent takes this error (on: error))\n", "  (it is removed in ")
	require.Contains(t, s.fails(codeStale, "", "resume", "f1").Err, "f1/pay")
	s.inOrder(s.ok("", "why", "f1/pay"), "by pay: declined\n", "    mend what failed:\n", "    quipu resume f1/pay\n")
	s.ok("", "resume", "f1/pay")
	s.fails(codeEnded, "", "wait", "f1/pay", "--timeout", "1m")
	require.Contains(t, s.ok("", "why", "f1"), `whose child (job "f1/pay") failed and was resumed, and failed again: declined`)

	said = s.ok("", "why", "f2")
	require.Contains(t, said, "every activity has ended, and then the output of the flow failed: ${ charge.output.id }: no such key: id")
	s.inOrder(said, "    if charge gives another result now:\n", "    quipu resume f2 --from charge\n", "    deploy a version of flow badoutput that fits:\n",
		"    quipu start badoutput f2-again --input-of f2\n", "  (the job keeps version 1 of its flow)\n")
	s.ok("", "resume", "f2", "--from", "charge")

	said = s.ok("", "why", "f3")
	s.inOrder(said, "by step after 2 attempts: panic: no till…, at ", "live_test.go:", " (quipu log f3 --raw shows all)")
	told := s.ok("", "log", "f3")
	require.Equal(t, 2, strings.Count(told, "error  panic: no till (+1 line; --raw)\n"), told)
	s.inOrder(told, "attempt 1 failed", "error  panic: no till", "at     ", "live_test.go:", " (--raw shows the stack)\n", "attempt 2", "the job failed with code 500")
	require.NotContains(t, told, "panic: panic:")
	s.inOrder(s.ok("", "log", "f3", "--raw"), "error  panic: no till\n", "       at all\n", "at     ", "stack  ")
	s.inOrder(s.ok("", "show", "f3"), "error    panic: no till (+1 line; quipu log --raw)\n", "error  panic: no till (+1 line; quipu log --raw)\n", "live_test.go:", " (quipu log --raw shows the stack)\n")
}
