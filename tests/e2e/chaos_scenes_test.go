//go:build chaos

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// scene is what one stage plays.
type scene struct {
	name string
	play func(*stage)
}

// allScenes play the whole protocol, each in jobs of its own.
var allScenes = []scene{
	{"race", sceneRace},
	{"feed", sceneFeed},
	{"cut", sceneCutFeed},
	{"poll", scenePoll},
	{"joins", sceneJoins},
	{"each", sceneEach},
	{"family", sceneFamily},
	{"tell", sceneTell},
	{"cry", sceneCry},
	{"queue", sceneQueue},
	{"stop", sceneStop},
	{"tree", sceneTree},
	{"walk", sceneWalk},
	{"cancel", sceneCancel},
	{"short", sceneShort},
	{"bound", sceneBound},
	{"guard", sceneGuard},
	{"ward", sceneWard},
}

// chosenScenes are those whose names begin as is asked for.
func chosenScenes() []scene {
	return slices.DeleteFunc(slices.Clone(allScenes), func(s scene) bool {
		return !strings.HasPrefix(s.name, os.Getenv("QUIPU_CHAOS_SCENES"))
	})
}

// most bounds what a scene does at random moments.
const most = 1200 * time.Millisecond

func ms(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// sceneRace: a signal and a timer for one hook (P13, P15): the hook says that the
// signal woke it if and only if the sender hears that it was consumed.
func sceneRace(s *stage) {
	var opts []quipu.SignalOption
	if s.dice.IntN(4) == 0 {
		opts = append(opts, quipu.Keep(300*time.Millisecond))
	}
	input := map[string]any{"for": ms(between(s.dice, 0, most))}
	early := s.dice.IntN(4) == 0
	if early {
		s.signal("raced", s.name, "once", s.name, opts...)
		s.wait(most / 4)
	}
	job := s.start("raced", "", input)
	if !early {
		s.wait(most)
		s.signal("raced", s.name, "once", s.name, opts...)
	}
	v := s.end(job)
	bySignal := `{"by":"signal","got":"` + s.name + `","late":true}`
	switch became := s.became("raced", s.name, "once"); {
	case became == quipu.SignalConsumed:
		s.gives(job, bySignal)
	case string(v.Output) != `{"by":"timer","got":null,"late":false}`:
		s.fail(&job, "E13: the signal is %s, the job says %s", became, v.Output)
	case became == quipu.SignalKept && opts == nil:
		s.kept(1)
	case became == quipu.SignalKept:
		s.until("the end of the kept signal", &job, func() (bool, error) {
			return s.became("raced", s.name, "once") == quipu.SignalMissed, nil
		})
	}
}

// sceneFeed: a hook that repeats: every signal is a pass of its own (P30).
func sceneFeed(s *stage) {
	early := s.dice.IntN(3)
	n := 2 + s.dice.IntN(5)
	var job quipu.Job
	for i := range n {
		if i == min(early, n-1) {
			job = s.start("feed", "", map[string]any{"nap": ms(between(s.dice, 0, most/8))})
		}
		code := quipu.Code(collation.CodePass)
		if i == n-1 {
			code = collation.CodeOK
		}
		s.signal("fed", s.name, itoa(i), i, code)
		s.applied(fmt.Sprintf("tick %s/%d", s.name, i))
		s.wait(most / 8)
	}
	s.gives(job, "null")
	var seen, want []string
	for _, i := range s.view(job).Instances {
		switch {
		case i.Key.Activity == "feed" && i.Key.DAD == ",0,0" && i.Ledger.String() != fmt.Sprintf("2011%011d", n):
			s.fail(&job, "C6: the feed of %d signals has %s", n, i.Ledger)
		case i.Key.Activity == "seen":
			seen = append(seen, string(i.Key.DAD))
		}
	}
	for i := range n {
		want = append(want, fmt.Sprintf(",0,%d,0", i))
	}
	if slices.Sort(seen); !slices.Equal(want, seen) {
		s.fail(&job, "C6: passes at %v, not %v", seen, want)
	}
}

// sceneCutFeed: a hook that repeats is interrupted while signals come: each is
// consumed or kept, and nothing else is left.
func sceneCutFeed(s *stage) {
	job := s.start("tree", "", map[string]any{"depth": 0})
	n := 1 + s.dice.IntN(5)
	var wg sync.WaitGroup
	other := &stage{c: s.c, ctx: s.ctx, name: s.name, dice: s.c.dice(s.name + " interrupt")}
	wg.Go(func() {
		other.wait(most)
		other.interrupt(job, quipu.Code(470))
	})
	for i := range n {
		s.signal("fed", s.name, itoa(i), i, quipu.Code(collation.CodePass))
		s.wait(most / 4)
	}
	wg.Wait()
	s.fails(job, journal.JobInterrupted, 470, "enough")
	for i := range n {
		if s.became("fed", s.name, itoa(i)) == quipu.SignalKept {
			s.kept(1)
		}
	}
}

// scenePoll: a loop by a cycle with a sleep and a join in it; one that never ends
// fails.
func scenePoll(s *stage) {
	stop := 1 + s.dice.IntN(8)
	job := s.start("poll", "", map[string]any{"stop": stop, "nap": ms(between(s.dice, 0, most/16))})
	for i := range min(stop, 7) {
		s.applied(fmt.Sprintf("tick %s/%d", s.name, i))
	}
	if stop < 8 {
		s.gives(job, fmt.Sprintf(`{"n":%d,"pass":%d}`, stop, stop-1))
		return
	}
	if v := s.end(job); v.State != journal.JobFailed || v.Code != 500 || v.Error.Class != "cycle" {
		s.fail(&job, "an endless loop ended %s with %d %+v", v.State, v.Code, v.Error)
	}
}

// sceneJoins: branches that fail, are late, or are never taken (P10).
func sceneJoins(s *stage) {
	part := func() int { return s.dice.IntN(200) }
	job := s.start("joins", "", map[string]any{"a": part(), "b": part(), "slow": 100 + part(), "nap": ms(between(s.dice, 0, most/4))})
	s.applied("tick " + s.name)
	v := s.end(job)
	late := "200"
	if strings.Contains(string(v.Output), `"late":408`) {
		late = "408"
	}
	s.gives(job, `{"sum":[1,null,0,3,"no quote"],"first":true,"any":200,"late":`+late+`}`)
}

// sceneEach: elements that fail and are tried again, a few at a time.
func sceneEach(s *stage) {
	type line struct {
		Fail  string `json:"fail"`
		Flaky int    `json:"flaky"`
		MS    int    `json:"ms"`
	}
	flow := pick(s.dice, "each_fail_1", "each_fail_3", "each_collect_2", "each_collect_100")
	collect := strings.HasPrefix(flow, "each_collect")
	lines, out, failed := make([]line, s.dice.IntN(16)), []any{}, ""
	for i := range lines {
		lines[i] = line{MS: s.dice.IntN(30), Flaky: max(0, s.dice.IntN(6)-3)}
		gives := any(i)
		if collect {
			gives = map[string]any{"code": 200, "output": i}
		}
		if s.dice.IntN(10) == 0 {
			lines[i].Fail = fmt.Sprintf("bad line %d", i)
			gives = map[string]any{"code": 500, "error": map[string]any{"class": "fatal", "code": 500, "message": lines[i].Fail}}
			if failed == "" {
				failed = fmt.Sprintf("element %d of items: %s", i, lines[i].Fail)
			}
		}
		out = append(out, gives)
	}
	job := s.start(flow, "", map[string]any{"lines": lines})
	if failed != "" && !collect {
		s.fails(job, journal.JobFailed, 500, failed)
		return
	}
	want, _ := json.Marshal(out)
	s.gives(job, string(want))
}

// sceneFamily: children that fail, are refused, late, and not awaited (P6).
func sceneFamily(s *stage) {
	taken := s.start("kid", ".taken", map[string]any{"n": 1})
	s.gives(taken, `{"n":1,"key":"`+taken.Key+`"}`)
	job := s.start("parent", "", map[string]any{"nap": ms(between(s.dice, 0, most/2)), "taken": taken.Key})
	v := s.end(job)
	late := "200"
	if strings.Contains(string(v.Output), `"late":408`) {
		late = "408"
	}
	s.gives(job, `{"ok":5,"bad":"negative","lucky":7,"none":404,"refused":400,"loose":"`+s.name+`.loose","late":`+late+`,"foreign":409}`)
	for key, want := range map[string]string{".ok": "5", ".loose": "6"} {
		kid, found := s.find(s.name + key)
		if !found {
			s.fail(&job, "the child %s is not there", s.name+key)
		}
		s.gives(kid, `{"n":`+want+`,"key":"`+kid.Key+`"}`)
	}
}

// sceneTell: a job signals another, in any order of the two (E13).
func sceneTell(s *stage) {
	input := map[string]any{"key": s.name}
	var asker, teller quipu.Job
	if s.dice.IntN(2) == 0 {
		asker = s.start("asker", ".asker", input)
		s.wait(most / 2)
		teller = s.start("teller", ".teller", input)
	} else {
		teller = s.start("teller", ".teller", input)
		s.wait(most / 2)
		asker = s.start("asker", ".asker", input)
	}
	s.gives(teller, `{"told":true}`)
	s.gives(asker, `{"from":"`+teller.Key+`"}`)
}

// sceneCry: a signal of mode all reaches whoever waits.
func sceneCry(s *stage) {
	input := map[string]any{"key": s.name}
	crowd := make([]quipu.Job, 1+s.dice.IntN(6))
	for i := range crowd {
		crowd[i] = s.start("asker", fmt.Sprintf(".%d", i), input)
	}
	for _, job := range crowd {
		s.waiting(job)
	}
	from := s.name + ".crier"
	if s.dice.IntN(2) == 0 {
		s.gives(s.start("crier", ".crier", input), `{"told":true}`)
	} else {
		s.until("signal to all", nil, func() (bool, error) {
			res, err := s.c.rt.SignalAll(s.ctx, "asked", s.name, map[string]any{"from": from}, quipu.IdempotencyKey("cry"))
			if err == nil && res.State != quipu.SignalConsumed {
				s.fail(nil, "a signal to all is %+v", res)
			}
			return true, err
		})
	}
	for _, job := range crowd {
		s.gives(job, `{"from":"`+from+`"}`)
	}
}

// sceneQueue: as many signals as waits for one key: each wait takes one, each
// signal is taken once.
func sceneQueue(s *stage) {
	n := 2 + s.dice.IntN(5)
	jobs := make([]quipu.Job, n)
	var wg sync.WaitGroup
	for i := range n {
		one := &stage{c: s.c, ctx: s.ctx, name: s.name, dice: s.c.dice(fmt.Sprintf("%s signal %d", s.name, i))}
		wg.Go(func() {
			one.wait(most)
			one.signal("asked", s.name, itoa(i), i)
		})
		jobs[i] = s.start("asker", fmt.Sprintf(".%d", i), map[string]any{"key": s.name})
	}
	wg.Wait()
	got := map[string]bool{}
	for _, job := range jobs {
		v := s.end(job)
		if v.State != journal.JobCompleted || got[string(v.Output)] {
			s.fail(&job, "job %s ended %s with %s, and others with %v", job.Key, v.State, v.Output, got)
		}
		got[string(v.Output)] = true
	}
	for i := range n {
		if became := s.became("asked", s.name, itoa(i)); became != quipu.SignalConsumed || !got[itoa(i)] {
			s.fail(nil, "signal %d is %s, taken were %v", i, became, got)
		}
	}
}

// sceneStop: a job that interrupts itself beside everything that can be open; its
// child goes on (C15, P8).
func sceneStop(s *stage) {
	loud := s.dice.IntN(2) == 0
	job := s.start("stop", "", map[string]any{"loud": loud, "rest": ms(between(s.dice, 0, most/2)), "kid": ms(between(s.dice, 0, most))})
	if loud {
		s.fails(job, journal.JobInterrupted, 451, "by "+s.name)
	} else {
		s.gives(job, `{"told":true}`)
	}
	s.kept(1)
}

// sceneTree: jobs that await jobs are interrupted from outside, all the way down.
func sceneTree(s *stage) {
	depth := s.dice.IntN(4)
	job := s.start("tree", "", map[string]any{"depth": depth})
	s.wait(most)
	s.interrupt(job, quipu.Descend(true), quipu.Code(471))
	s.fails(job, journal.JobInterrupted, 471, "enough")
	for key := s.name + ".l"; depth > 0; key, depth = key+".l", depth-1 {
		if kid, found := s.find(key); found {
			s.fails(kid, journal.JobInterrupted, 471, "enough")
		}
	}
}

// sceneWalk: an interrupt at any moment of a job's life; what it awaits goes on.
func sceneWalk(s *stage) {
	job := s.start("walk", "", nil)
	s.wait(most)
	s.interrupt(job, quipu.Code(472))
	if v := s.end(job); v.State == journal.JobCompleted {
		s.gives(job, "1")
	} else {
		s.fails(job, journal.JobInterrupted, 472, "enough")
	}
}

// sceneCancel: a job interrupts another, itself by its key, or nobody.
func sceneCancel(s *stage) {
	switch s.dice.IntN(4) {
	case 0:
		s.gives(s.start("cancel", "", map[string]any{"target": s.name + ".nobody"}), `{"code":404,"found":false}`)
	case 1:
		s.fails(s.start("cancel", "", map[string]any{"target": s.name}), journal.JobInterrupted, 460, "by "+s.name)
	default:
		victim := s.start("tree", ".victim", map[string]any{"depth": s.dice.IntN(3)})
		s.wait(most)
		v := s.end(s.start("cancel", "", map[string]any{"target": victim.Key}))
		if v.Code != 200 || !strings.Contains(string(v.Output), `"code":200`) {
			s.fail(&victim, "the job that cancels it gives %d %s %+v", v.Code, v.Output, v.Error)
		}
		s.fails(victim, journal.JobInterrupted, 460, "by "+s.name)
	}
}

// sceneShort: jobs that are kept for a second, and keys that are used again (P29).
func sceneShort(s *stage) {
	for n := range 2 + s.dice.IntN(2) {
		job := s.start("short", "", map[string]any{"n": n})
		if n > 0 && s.dice.IntN(2) == 0 {
			s.wait(most / 8)
		}
		s.until("the expiry of "+job.Key, &job, func() (bool, error) {
			v, err := s.c.rt.Job(s.ctx, job)
			if err == nil && v.State == journal.JobCompleted && v.Ended && string(v.Output) != fmt.Sprintf(`{"kid":%d,"n":%d}`, n, n) {
				s.fail(&job, "job %d of %s gives %s", n, job.Key, v.Output)
			}
			return err == nil && v.State == journal.JobExpired, err
		})
	}
}

// sceneBound: a signal and the bound of a hook at the same moment, perhaps a signal
// that brings an error.
func sceneBound(s *stage) {
	job := s.start("bound", "", nil)
	s.wait(most / 2)
	refuse := s.dice.IntN(3) == 0
	code := quipu.Code(collation.CodeOK)
	if refuse {
		code = 422
	}
	s.signal("bounds", s.name, "once", s.name, code)
	v := s.end(job)
	became := s.became("bounds", s.name, "once")
	switch {
	case became == quipu.SignalKept && v.State == journal.JobFailed && v.Code == 408:
		s.kept(1)
	case became == quipu.SignalConsumed && refuse && v.State == journal.JobFailed && v.Code == 422:
	case became == quipu.SignalConsumed && !refuse:
		s.gives(job, `"`+s.name+`"`)
	default:
		s.fail(&job, "E13: the signal is %s, the job ended %s with %d %+v", became, v.State, v.Code, v.Error)
	}
}

// sceneGuard: a job is interrupted whose effect may be parked for a person.
func sceneGuard(s *stage) {
	job := s.start("guard", "", nil)
	s.atMost("touch " + s.name)
	s.wait(2 * most)
	s.interrupt(job, quipu.Code(473))
	if v := s.end(job); v.State == journal.JobCompleted {
		s.gives(job, `{"receipt":true}`)
	} else {
		s.fails(job, journal.JobInterrupted, 473, "enough")
	}
}

// sceneWard: a child is interrupted, as soon as it is there or later: its parent
// hears why.
func sceneWard(s *stage) {
	job := s.start("ward", "", nil)
	var kid quipu.Job
	s.until("the child", &job, func() (found bool, _ error) {
		kid, found = s.find(s.name + ".kid")
		return found, nil
	})
	if s.dice.IntN(2) == 0 {
		s.wait(most)
	}
	s.interrupt(kid, quipu.Descend(true), quipu.Code(474))
	s.gives(job, `{"code":474,"why":"enough"}`)
	s.fails(kid, journal.JobInterrupted, 474, "enough")
}
