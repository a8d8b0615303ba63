package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal"
)

// 3.3, E10: a person who finds that the call was done says so, and the handler goes on with its
// result. show describes the effect before and after.
func TestDeadDone_E10(t *testing.T) {
	s := newSpace(t)
	s.deploy("parks", "1", "cut", `{onretry: "called again"}`)
	for _, key := range []string{"done", "again"} {
		s.ok("", "start", "parks", key, "--input", `{"name":"Ada"}`)
	}
	ids := s.dead(2)
	require.Contains(t, s.ok("", "dead", "ls", "-o", "json"), "`quipu dead done`")
	s.why("done", "    quipu dead done "+ids["done"]+" --result JSON\n")

	r := s.fails(codeUndone, "", "show", "--effect", "call", "done", "-o", "json")
	effect := objects(t, r.Out)[0]
	require.Equal(t, []any{"started", "guarded", "step", "done"}, []any{effect["state"], effect["class"], effect["activity"], effect["job_key"]})
	key := effect["effect"].(string)
	require.Contains(t, s.ok("", "show", "done", "--digits"), "call    guarded  step      ,0,0     started  "+key+"\n")
	require.Contains(t, s.fails(codeUndone, "", "show", "--effect", key).Out, "its outcome is unknown")

	refused := s.fails(codeRefused, "", "dead", "done", ids["done"], "--result", "1", "--effect", strings.Repeat("1", 64)).Err
	require.Contains(t, refused, "quipu dead done: refused input: dead letter "+ids["done"]+": the request has no effect with the key ")
	require.Contains(t, refused, "call ("+key+")")
	require.Contains(t, s.fails(codeRefused, "", "dead", "done", ids["done"]).Err,
		"quipu dead done: refused input: decision on dead letter "+ids["done"]+": the result is missing: what the effect's function")
	o := objects(t, s.ok("", "dead", "done", ids["done"], "--result", `"seen"`, "--effect", key, "--reason", "in the books", "-o", "json"))
	require.Equal(t, "done", o[0]["state"])
	require.Equal(t, "done  completed  {\"text\":\"seen\"}\n", s.ok("", "wait", "done", "--timeout", "1m"))
	require.Equal(t, journal.Operator{Action: "done", Who: "ada", Reason: "in the books", Login: "quipu"}, s.operator("done"))
	shown := s.ok("", "show", "--effect", "call", "done")
	for _, said := range []string{"effect   call (" + key + ")", "step at ,0,0", "state    completed", `result   "seen"`, "effect.started", "effect.completed", "done: in the books"} {
		require.Contains(t, shown, said)
	}
	require.Equal(t, shown, s.ok("", "show", "--effect", key))
	require.Contains(t, s.fails(codeNotFound, "", "show", "--effect", "cal", "done").Out, "exactly the name or key that was given. The job has: call.")
	listed := objects(t, s.ok("", "show", "done", "-o", "json"))[0]["effects"].([]any)
	require.Len(t, listed, 1)
	require.Subset(t, listed[0], map[string]any{"effect": key, "name": "call", "state": "completed", "activity": "step"})

	s.ok("", "dead", "retry", ids["again"])
	require.Equal(t, "again  completed  {\"text\":\"called again\"}\n", s.ok("", "wait", "again", "--timeout", "1m"))
	both := objects(t, s.fails(codeUndone, "", "show", "--effect", "call", "again", "-o", "json").Out)
	require.Len(t, both, 2)
	require.Equal(t, []any{"not_done", "completed"}, []any{both[0]["state"], both[1]["state"]})
	require.NotEqual(t, both[0]["effect"], both[1]["effect"], "one key for each time")
}

// J8: an effect that a job's journal does not have did not happen. For a closed job that is a
// proof.
func TestShowEffectThatIsNone_J8(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `"${ start.output.name }"`)
	s.deploy("slow", "1", "nobody", "{}")
	s.ok("", "start", "hello", "closed", "--input", `{"name":"Ada"}`)
	s.ok("", "start", "slow", "open", "--input", `{"name":"Ada"}`)
	s.ok("", "wait", "closed")
	var proved string
	require.Eventually(t, func() bool { // its last row goes with its completion tasks
		r := s.do("", "show", "--effect", "charge[line-3]", "closed")
		proved = r.Out
		return r.Code == codeNotFound
	}, time.Minute, 20*time.Millisecond)
	require.Contains(t, proved, `Effect charge[line-3] did not happen in job "closed". The job is completed since `)
	require.Contains(t, proved, "It cannot happen any more either")
	require.Contains(t, proved, "\nThe job has no effects.\n")
	require.Contains(t, s.fails(codeUndone, "", "show", "--effect", "charge", "open").Out, "The job is open, so it can still happen.")

	o := objects(t, s.fails(codeNotFound, "", "show", "--effect", "charge", "closed", "-o", "json").Out)[0]
	require.Equal(t, []any{"absent", true, "completed"}, []any{o["state"], o["proved"], o["job_state"]})
	o = objects(t, s.fails(codeUndone, "", "show", "--effect", "charge", "open", "-o", "json").Out)[0]
	require.Equal(t, []any{"absent", false, "open"}, []any{o["state"], o["proved"], o["job_state"]})

	none := strings.Repeat("ab", 32)
	require.Contains(t, s.fails(codeNotFound, "", "show", "--effect", none).Err, "no job of this space has an effect with the key "+none)
	s.fails(codeNotFound, "", "show", "--effect", none, "closed")
	s.fails(codeNotFound, "", "show", "--effect", "charge", "nobody")
	require.Contains(t, s.fails(cli.CodeUsage, "", "show", "--effect", "charge").Err, "give the job, too")
}
