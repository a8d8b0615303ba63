package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/view"
)

// glance is the pause between two frames: each opens its connections anew.
const glance = 500 * time.Millisecond

// top shows what is open, what runs and what is stuck, in a terminal again and again.
func TestTop(t *testing.T) {
	s := newSpace(t)
	require.Eventually(t, func() bool { return strings.Contains(s.ok("", "top", "--once"), "nothing is stuck\n") },
		time.Minute, glance, "its process is seen a moment after its start")
	require.Contains(t, s.ok("", "top", "--once", "--nats", ""), "no queue is seen", "it does not say that all is well")
	s.deploy("naps", "1", "sleep", `{for: 1h}`)
	s.deploy("lost", "1", "nobody.serves", `{a: 1}`)
	s.deploy("parks", "1", "cut", `{onretry: "done"}`)
	for _, flow := range []string{"naps", "lost", "parks"} {
		s.ok("", "start", flow, flow+"-1", "--input", `{"name":"Ada"}`)
	}
	s.ok("", "call", "echo", "early", `{"n": 1}`)
	s.dead(1)
	var frame map[string]any
	require.Eventually(t, func() bool {
		frame = objects(t, s.ok("", "top", "--once", "-o", "json"))[0]
		said := s.ok("", "top")
		return strings.Contains(said, "nobody.serves") && strings.Contains(said, "jobs: 3 open")
	}, time.Minute, glance)
	topics := map[any]map[string]any{}
	require.Eventually(t, func() bool { // O9: the rate comes with the next renewal of the session
		for _, x := range objects(t, s.ok("", "top", "--once", "-o", "json"))[0]["topics"].([]any) {
			topic := x.(map[string]any)
			topics[topic["topic"]] = topic
		}
		cut, echo := topics["cut"], topics["echo"]
		return cut != nil && cut["runs_per_second"].(float64) > 0 &&
			echo != nil && echo["early"].(map[string]any)["mean_run_seconds"].(float64) > 0
	}, time.Minute, glance)
	require.NotContains(t, topics["cut"], "early")
	require.Regexp(t, `echo .* 0 +[0-9.]+m?µ?s  `, s.ok("", "top"), "none was dropped")
	require.Regexp(t, `cut +0 +0 +0\.0[1-9] `, s.ok("", "top"))
	require.Equal(t, map[string]any{"engine": 1.0, "workers": 1.0, "schedule": 1.0, "retention": 1.0}, frame["processes"])
	said := s.ok("", "top")
	s.inOrder(said, "default  processes: engine 1", "jobs: 3 open, ", "/s begin\n", "requests that nobody serves: nobody.serves  1",
		"quipu ls --waits topic:nobody.serves", "dead letters: parked", "quipu dead ls --reason parked", "TOPIC", "KEPT ", "nobody.serves", "nobody\n", "FLOW", "lost ")
	require.NotContains(t, said, "\x1b", "it is no terminal")
	require.Contains(t, s.do("", "processes").Err, "wrong: dead letters: parked: quipu dead ls --reason parked\n")
	require.Equal(t, "lost-1\n", s.ok("", "ls", "-k", "--waits", "topic:nobody.serves"), "as it says")

	var out clitest.Buffer
	stop := s.goesOn(clitest.Terminal(t, 100, 40, &out), "top")
	s.becomes(&out, "\x1b[2J", "jobs: 3 open", "\x1b[H", "/s end")
	require.Equal(t, cli.CodeInterrupted, stop())
}

// The rate of ends follows from what began and what is open, within ten seconds.
func TestTopTellsEnds(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	look := func(after time.Duration, open int64, started float64, before []opened) (*frame, []opened) {
		f := &frame{&view.Space{Time: at.Add(after), Started: started, Flows: []view.FlowLoad{{Flow: "a", Open: open}}}}
		return f, f.ends(before)
	}
	f, seen := look(0, 100, 3, nil)
	require.Nil(t, f.Ended, "there is no look before it")
	f, seen = look(4*time.Second, 92, 3, seen)
	require.InDelta(t, 5, *f.Ended, 1e-9, "3/s began, and 2/s less are open")
	f, seen = look(12*time.Second, 100, 3, seen)
	require.InDelta(t, 2, *f.Ended, 1e-9, "since the look 8 s before")
	require.Len(t, seen, 2)
	f, seen = look(13*time.Second, store.MaxGaugedJobs, 3, seen)
	require.Nil(t, f.Ended, "not all were counted")
	require.Empty(t, seen)
}
