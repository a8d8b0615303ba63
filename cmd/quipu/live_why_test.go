package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// open is a flow that waits in every way at once: for a worker that does not
// exist, elements, a signal, a race, a timer, a child, and a join of them.
const open = `flow: open
version: "1"
activities:
  start:  {type: trigger}
  charge: {type: worker, topic: nobody}
  items:  {type: worker, topic: nobody, each: "[1, 2, 3]", parallel: 2}
  asked:  {type: hook, signal: order.asked, key: "${ job.id }"}
  review: {type: hook, signal: order.reviewed, key: "${ job.id }", sleep: 72h}
  feed:   {type: hook, signal: feed.item, key: "${ job.id }", repeat: true}
  nap:    {type: hook, sleep: 1h}
  child:  {type: await, flow: closed, id: "${ job.id }/child"}
  merge:  {type: worker, topic: echo}
output: {review: "${ review.output }"}
transitions:
  start:  [charge, items, asked, review, feed, nap, child]
  charge: [merge]
  asked:  [merge]
`

// closed is a child that waits, too.
const closed = `flow: closed
version: "1"
activities:
  start: {type: trigger}
  gate:  {type: hook, signal: gate, key: "${ job.id }"}
output: {gate: "${ gate.output }"}
transitions: {start: [gate]}
`

func (s *space) deployText(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name+".yaml")
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o644))
	s.ok("", "deploy", path)
}

// why waits until its output has all wanted texts, and returns it.
func (s *space) why(key string, wanted ...string) (said string) {
	s.t.Helper()
	missing := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		said, missing = s.ok("", "why", key), ""
		for _, w := range wanted {
			if !strings.Contains(said, w) {
				missing = w
			}
		}
		if missing == "" {
			return said
		}
	}
	s.t.Fatalf("quipu why %s never said %q:\n%s", key, missing, said)
	return ""
}

// 5.3: why over a real job, in each kind of waiting.
func TestWhyOfARealJob(t *testing.T) {
	s := newSpace(t)
	s.deployText("closed", closed)
	s.deployText("open", open)
	s.ok("", "start", "open", "o1")
	s.why("o1",
		"o1 (open)", "charge needs a handler of nobody, and no process that is alive has one", "    quipu top --once\n", "    quipu interrupt o1\n",
		"charge was sent to nobody", "attempt 1 of 3; it waits for the response",
		"items: 0 of 3 elements have ended; 2 sent to nobody, the oldest ", " ago, 1 held, at most 2 are under way at once",
		`asked waits for signal order.asked with key "o1", since`, "    quipu signal order.asked o1 PAYLOAD\n",
		`review waits for signal order.reviewed with key "o1" or for its timer, which goes off in 2 d 23 h`,
		`feed waits for signal feed.item with key "o1"`, "0 signals so far, one with code 200 ends it",
		"nap sleeps and wakes in 59 min",
		`child waits for job "o1/child", which is open`,
	)
	s.ok("", "signal", "order.asked", "o1")
	s.why("o1", "merge has 1 of 2 arrivals; missing are those of charge")
	s.ok("", "signal", "feed.item", "o1", "--code", "202")
	s.why("o1", "1 signal so far")

	var o map[string]any
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if o = objects(t, s.ok("", "why", "o1", "-o", "json", "--limit", "2"))[0]; o["more"] == 6.0 {
			break // what follows the signal has ended, too
		}
	}
	require.Len(t, o["reasons"], 2)
	require.EqualValues(t, 6, o["more"])
	require.Equal(t, "nobody", o["reasons"].([]any)[0].(map[string]any)["kind"], "what needs somebody comes first")
	require.Contains(t, s.ok("", "why", "o1", "--limit", "2"), "… and 6 more; --limit 0 says all")
	p := objects(t, s.ok("", "processes", "-o", "json"))[0]
	require.Contains(t, p["roles"], "engine")
	require.Contains(t, p["topics"], "echo")
	require.Contains(t, s.ok("", "processes"), "engine workers")

	shown := s.ok("", "show", "o1", "o1/child", "--digits")
	for _, said := range []string{
		"├─ ● items   worker nobody               waiting, 0/3 elements", "0 00 0 1 01 00000000", "not entered, 1 arrival",
		"● merge      worker echo, join all       waiting, 1/2 arrivals", "items[0]", "held until other elements end",
		"parent   o1, by child at ,0,0", "OPEN ROW", "WAITS FOR", "feed.item       o1   feed",
		"child ,0,0   starts child o1/child\n", "nap ,0,0     sleeps until ",
	} {
		require.Contains(t, shown, said)
	}
	require.Equal(t, "o1/child\n", s.ok("", "ls", "--parent", "o1", "--keys"))
	v := objects(t, s.ok("", "show", "o1/child", "-o", "json"))[0]
	require.Equal(t, "child", v["parent"].(map[string]any)["activity"])
	require.Len(t, v["waits"], 1)
	require.Contains(t, s.fails(codeNotFound, "", "why", "none").Err, `"none"`)
}

// 1.11: signals from the command line are taken, kept, missed and recognized as repeated.
func TestSignals(t *testing.T) {
	s := newSpace(t)
	s.deployText("closed", closed)
	r := s.fails(codeNotFound, "", "signal", "gate", "s1", "--all")
	require.Contains(t, r.Out, "reached nobody")
	require.Contains(t, s.ok(`{"n": 1}`, "signal", "gate", "s1", "-", "--id", "one"), "is kept for 24h0m0s")
	s.ok("", "start", "closed", "s1")
	require.Equal(t, `s1  completed  {"gate":{"n":1}}`+"\n", s.ok("", "wait", "s1", "--timeout", "1m"))
	require.Contains(t, s.ok("", "signal", "gate", "s1", "2", "--id", "one"), "was sent before with this --id, and was consumed")

	s.ok("", "start", "closed", "s2")
	s.why("s2", "waits for signal gate")
	o := objects(t, s.ok("", "signal", "gate", "s2", `"yes"`, "--all", "-o", "json"))[0]
	require.Equal(t, map[string]any{"topic": "gate", "key": "s2", "state": "consumed", "duplicate": false, "reached": 1.0}, o)
	require.Equal(t, `s2  completed  {"gate":"yes"}`+"\n", s.ok("", "wait", "s2", "--timeout", "1m"))
	require.Contains(t, s.ok("", "why", "s2"), `by gate; its output is {"gate":"yes"}`)

	s.ok("", "start", "closed", "s3")
	s.ok("", "signal", "gate", "s3", "--code", "403")
	require.Contains(t, s.fails(codeEnded, "", "wait", "s3", "--timeout", "1m").Out, "403")
	require.Contains(t, s.fails(codeRefused, "", "signal", "Gate!", "s3").Err, "topic")
	require.Contains(t, s.fails(codeRefused, "", "signal", "gate", "s3", "--code", "201").Err, "code 201")
}

// O11: the log says who started a job, who sent the signal that it took and who interrupted one: the
// user, or whom --who names.
func TestActsSayWho(t *testing.T) {
	s := newSpace(t)
	s.deployText("closed", closed)
	s.ok("", "start", "closed", "a1", "--who", "ann")
	s.ok("", "signal", "gate", "a1", "--who", "bob")
	s.ok("", "wait", "a1", "--timeout", "1m")
	require.Regexp(t, `(?s)version 1, by ann\b.*the signal came, sent by bob\b`, s.ok("", "log", "a1"))
	s.ok(`{"flow": "closed", "key": "a2"}`, "start", "-", "--who", "ann")
	s.ok("", "interrupt", "a2", "--who", "eve")
	s.fails(codeEnded, "", "wait", "a2", "--timeout", "1m")
	require.Regexp(t, `(?s), by ann\b.*eve`, s.ok("", "log", "a2"))
	s.ok("", "start", "closed", "a3")
	require.Contains(t, s.ok("", "log", "a3"), "version 1, by ")
}

// C15: interrupts from the command line, of one job, of several, and of children.
func TestInterrupts(t *testing.T) {
	s := newSpace(t)
	s.deployText("closed", closed)
	s.deployText("open", open)
	for _, key := range []string{"i1", "i2", "i3"} {
		s.ok("", "start", "open", key)
		s.why(key, "which is open")
	}
	require.Regexp(t, `^i1 \([0-9a-f-]{36}\) will be interrupted as soon as an engine takes the message\n$`, s.ok("", "interrupt", "i1", "--reason", "not wanted", "--code", "499", "--id", "x"))
	require.Contains(t, s.fails(codeEnded, "", "wait", "i1", "--timeout", "1m").Out, "interrupted  499 interrupted: not wanted")
	s.inOrder(s.ok("", "why", "i1"), "by an interrupt that was sent to it: not wanted\n", "    quipu why i1/child\n",
		"    when that has completed:\n", "    quipu resume i1\n", "  (7 open obligations were abandoned)\n")
	require.Contains(t, s.ok("", "show", "i1"), "abandoned")
	require.Equal(t, "open", objects(t, s.ok("", "show", "i1/child", "-o", "json"))[0]["state"], "children go on")
	r := s.fails(codeNotFound, "i1\nnone\n", "interrupt", "-")
	require.Regexp(t, `job "i1" \([0-9a-f-]{36}\): it has ended already`, r.Err)
	s.fails(codeStale, "", "interrupt", "i1")

	s.ok("", "migrate", "--roles") // a client's login is enough: nothing else is read of the job (S8)
	s.ok("", "interrupt", "i2", "--descend", "-o", "json", "--postgres", s.env["QUIPU_POSTGRES"]+"&role=quipu_default_client")
	s.fails(codeEnded, "", "wait", "i2", "i2/child", "--timeout", "1m")
	s.ok("", "interrupt", "i3", "--no-throw")
	require.Equal(t, "i3  completed  {\"review\":null}\n", s.ok("", "wait", "i3", "--timeout", "1m"))
}

// J10: the state at each entry, and at the last one what the tables say.
func TestReplayOfARealJob(t *testing.T) {
	s := newSpace(t)
	s.deployText("closed", closed)
	s.deployText("open", open)
	s.ok("", "start", "open", "r1")
	s.why("r1", "which is open", "nap sleeps", "feed waits", "review waits", "asked waits", "items: 0 of", "charge was sent")
	s.ok("", "signal", "order.asked", "r1")
	s.why("r1", "1 of 2 arrivals")

	now := objects(t, s.ok("", "show", "r1", "-o", "json"))[0]
	last := objects(t, s.ok("", "replay", "r1", "-o", "json"))[0]
	require.Equal(t, now["entries"], last["at"].(map[string]any)["entry"])
	require.ElementsMatch(t, now["activities"], last["activities"])
	require.Equal(t, []any{now["semaphore"], now["state"]}, []any{last["semaphore"], last["state"]})
	require.Len(t, last["waits"], 2)
	require.Len(t, last["children"], 1)
	first := objects(t, s.ok("", "replay", "r1", "--at", "1", "-o", "json"))[0]
	require.Equal(t, "created", first["at"].(map[string]any)["kind"])
	require.Len(t, first["activities"], 1)
	text := s.ok("", "replay", "r1")
	for _, said := range []string{fmt.Sprintf("at       entry %.0f of", now["entries"]), "OPEN OBLIGATION", "OPEN ROW", "WAITS FOR", "CHILD"} {
		require.Contains(t, text, said)
	}
	require.Contains(t, s.fails(codeRefused, "", "replay", "r1", "--at", "9999").Err, "its journal has")
	s.fails(codeNotFound, "", "replay", "none")
}

// The completion that a shell asks for when a key is begun.
func TestKeysAreCompleted(t *testing.T) {
	s := newSpace(t)
	s.deployText("closed", closed)
	for _, key := range []string{"order-1", "order-2", "other"} {
		s.ok("", "start", "closed", key)
	}
	for _, command := range []string{"show", "why", "wait", "interrupt", "replay", "export"} {
		require.Equal(t, []string{"order-2", "order-1"}, strings.Fields(s.ok("", "__complete", command, "ord"))[:2], command)
	}
}

const declined = `
flow: declined
version: "1"
activities:
  start: {type: trigger}
  first: {type: worker, topic: echo, input: {n: 1}}
  pay: {type: worker, topic: fail, input: {code: 402, message: "declined"}}
transitions: {start: [first], first: [pay]}
`

// A failed job is resumed from the command line, and each generation names the other.
func TestResumes(t *testing.T) {
	s := newSpace(t)
	s.deployText("declined", declined)
	s.ok("", "start", "declined", "r1")
	s.fails(codeEnded, "", "wait", "r1", "--timeout", "1m")
	require.Contains(t, s.ok("", "why", "r1"), "quipu resume r1")
	was := objects(t, s.ok("", "show", "r1", "-o", "json"))[0]
	require.NotContains(t, was, "resumed_by")
	require.Contains(t, s.fails(codeStale, "", "resume", "r1", "--from", "nothing").Err, "it has first, pay")
	require.Contains(t, s.ok("", "resume", "r1", "--who", "ann", "--reason", "paid in"), "r1 goes on as generation 2, job ")
	s.fails(codeEnded, "", "wait", "r1", "--timeout", "1m")
	old := was["job"].(string)
	require.Contains(t, s.ok("", "show", "r1"), "resumes  generation 1, job "+old)
	require.Contains(t, s.ok("", "show", old), "resumed  as job ")
	require.Contains(t, s.ok("", "log", old), "ann (login quipu): resume (paid in), the next generation goes on as job ")
	told := s.ok("", "log", "r1")
	require.Contains(t, told, "generation 2 goes on with generation 1; decided by ann (paid in); the earlier job is "+old+"\n")
	require.Contains(t, told, "taken over from generation 1")
	require.Regexp(t, `first +done, taken over from generation 1.*\n +in +\{"n":1\}`, told)
	require.Regexp(t, `first +done, taken over from generation 1.*\n +in +\{"n":1\}`, s.ok("", "show", "r1"))
	var again struct{ Generation int }
	require.NoError(t, json.Unmarshal([]byte(s.ok("", "resume", "r1", "-o", "json")), &again))
	require.Equal(t, 3, again.Generation)
	require.Contains(t, s.fails(codeNotFound, "none\n", "resume", "-").Err, "not found")
}

const partly = `
flow: partly
version: "1"
activities:
  start: {type: trigger}
  reserve: {type: worker, topic: sleep, each: "${ ['0s', 'long'] }", input: {for: "${ item }"}}
transitions: {start: [reserve]}
`

// The elements of a list that succeeded are taken over. They were not sent again; the log shows
// their inputs, too.
func TestALogOfElementsThatAreTakenOver(t *testing.T) {
	s := newSpace(t)
	s.deployText("partly", partly)
	s.ok("", "start", "partly", "p1")
	s.fails(codeEnded, "", "wait", "p1", "--timeout", "1m")
	s.ok("", "resume", "p1")
	s.fails(codeEnded, "", "wait", "p1", "--timeout", "1m")
	for _, told := range []string{s.ok("", "log", "p1"), s.ok("", "show", "p1")} {
		require.Contains(t, told, "reserve[0]  done, taken over from generation 1")
		require.Contains(t, told, `{"for":"long"}`)
		require.Contains(t, told, `{"for":"0s"}`)
		require.NotContains(t, told, "it evaluates to something else")
	}
}
