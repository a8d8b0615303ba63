//go:build chaos

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
)

func init() {
	allScenes = append(allScenes, fnScenes...)
	for _, topic := range []string{"f_naps", "f_asks", "f_kids", "f_first", "f_saga", "f_bank", "f_proof", "f_new", "f_tx", "f_wait"} {
		sceneTexts = append(sceneTexts, fnText(topic, topic, ""))
	}
	sceneTexts = append(sceneTexts, fnText("f_saga_within", "f_saga", "within: 900ms, "), `
flow: f_each
version: "1"
output: "${ items.output }"
activities:
  start: {type: trigger}
  items: {type: worker, topic: f_naps, each: start.output.lines, parallel: 3, each_errors: collect, TRIES, input: {id: "${ job.id }-${ index }", naps: "${ item.naps }", fail: "${ item.fail }"}}
transitions: {start: [items]}
`)
}

// fnText is a flow of one function, whose input is the job's.
func fnText(name, topic, more string) string {
	return strings.NewReplacer("NAME", name, "TOPIC", topic, "MORE", more).Replace(`
flow: NAME
version: "1"
output: "${ fn.output }"
activities:
  start: {type: trigger}
  fn:    {type: worker, topic: TOPIC, input: "${ start.output }", MORETRIES}
transitions: {start: [fn]}
`)
}

// fnScenes play durable functions (3.5).
var fnScenes = []scene{
	{"fn naps", sceneNaps},
	{"fn asks", sceneAsks},
	{"fn kids", sceneKids},
	{"fn first", sceneFirst},
	{"fn saga", sceneSaga},
	{"fn saga", sceneSaga},
	{"fn bank", sceneBank},
	{"fn proof", sceneProof},
	{"fn new", sceneNew},
	{"fn tx", sceneTx},
	{"fn wait", sceneWaits},
	{"fn each", sceneFnEach},
	{"fn call", sceneCall},
}

// naps are up to n spans up to most, and what they tick outside.
func (s *stage) naps(id string, n int) []span {
	out := make([]span, 1+s.dice.IntN(n))
	for i := range out {
		out[i] = span(s.dice.IntN(int(most.Milliseconds()) / 4))
		s.applied(fmt.Sprintf("tick %s/%d", id, i))
	}
	return out
}

// sceneNaps: sleeps one after the other, and numbers that stay what they were.
func sceneNaps(s *stage) {
	naps := s.naps(s.name, 6)
	if s.dice.IntN(4) == 0 {
		s.fails(s.start("f_naps", "", nap{ID: s.name, Naps: naps, Fail: "too tired"}), journal.JobFailed, 422, "too tired")
		return
	}
	s.gives(s.start("f_naps", "", nap{ID: s.name, Naps: naps}), fmt.Sprintf(`{"naps":%d}`, len(naps)))
}

// sceneAsks: awaits with bounds, raced by signals that are early, late, too many
// and errors (E13): what the function got is what was consumed.
func sceneAsks(s *stage) {
	in := asking{ID: s.name}
	for i := range 1 + s.dice.IntN(4) {
		in.Bounds = append(in.Bounds, span(1+s.dice.IntN(int(most.Milliseconds())/2)))
		s.applied(fmt.Sprintf("tick %s/%d", s.name, i))
	}
	says, early := make([]string, s.dice.IntN(len(in.Bounds)+2)), s.dice.IntN(3)
	var job quipu.Job
	for i := range max(len(says), early+1) {
		if i == early {
			job = s.start("f_asks", "", in)
		}
		if i < len(says) {
			s.wait(most / 3)
			says[i] = fmt.Sprint(s.name, "/", i)
			if s.dice.IntN(4) == 0 {
				s.signal("answers", s.name, itoa(i), says[i], quipu.Code(423))
				says[i] = `423 "` + says[i] + `"`
				continue
			}
			s.signal("answers", s.name, itoa(i), says[i])
		}
	}
	var got, want []string
	if v := s.end(job); v.State != journal.JobCompleted || json.Unmarshal(v.Output, &got) != nil || len(got) != len(in.Bounds) {
		s.fail(&job, "job %s ended %s with %d: %s %+v", job.Key, v.State, v.Code, v.Output, v.Error)
	}
	for i := range says {
		if s.became("answers", s.name, itoa(i)) == quipu.SignalConsumed {
			want = append(want, says[i])
		} else {
			s.kept(1)
		}
	}
	got = slices.DeleteFunc(got, func(g string) bool { return g == "timeout" })
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.fail(&job, "E13: the function got %q, consumed were %q", got, want)
	}
}

// sceneKids: children side by side, one of them against a sleep.
func sceneKids(s *stage) {
	taken := s.start("kid", ".taken", map[string]any{"n": 1})
	s.gives(taken, `{"n":1,"key":"`+taken.Key+`"}`)
	part := func() span { return span(s.dice.IntN(int(most.Milliseconds()) / 2)) }
	job := s.start("f_kids", "", kidding{ID: s.name, Nap: part(), Bound: part(), Taken: taken.Key})
	for _, kid := range []string{"ok", "bad", "none", "refused", "taken"} {
		s.applied("tick " + s.name + "/before " + kid)
		s.applied("tick " + s.name + "/after " + kid)
	}
	who := `"who":0,"late":8`
	if v := s.end(job); strings.Contains(string(v.Output), `"who":1`) {
		who = `"who":1,"late":-1`
	}
	s.gives(job, `{"all":["5","500","404","400","409"],`+who+`}`)
	kid, found := s.find(s.name + ".ok")
	if !found {
		s.fail(&job, "the child is not there")
	}
	s.gives(kid, `{"n":5,"key":"`+kid.Key+`"}`)
}

// sceneFirst: one of four wins and goes on; what the others did outside they did
// once at most.
func sceneFirst(s *stage) {
	part := func() span { return span(s.dice.IntN(int(most.Milliseconds()))) }
	early := s.dice.IntN(5) == 0
	if early {
		s.signal("raced-first", s.name, "once", s.name)
	}
	job := s.start("f_first", "", racing{ID: s.name, Sleep: part(), Nap: part()})
	if !early {
		s.wait(most)
		s.signal("raced-first", s.name, "once", s.name)
	}
	var got struct{ Who, Value int }
	v := s.end(job)
	if err := json.Unmarshal(v.Output, &got); v.State != journal.JobCompleted || err != nil || got.Who != got.Value {
		s.fail(&job, "job %s ended %s with %d: %s %+v", job.Key, v.State, v.Code, v.Output, v.Error)
	}
	for i := range 4 {
		if ran := fmt.Sprintf("tick %s/ran %d", s.name, i); i == got.Who {
			s.applied(ran)
		} else {
			s.perhaps(ran)
		}
	}
	s.perhaps("tick " + s.name + "/pair")
	s.applied(fmt.Sprintf("tick %s/won %d", s.name, got.Who))
	s.applied("tick " + s.name + "/end")
	switch became := s.became("raced-first", s.name, "once"); {
	case became == quipu.SignalKept && got.Who == 1:
		s.fail(&job, "E13: the signal won and is kept")
	case became == quipu.SignalKept:
		s.kept(1)
	}
}

// sceneSaga: bookings that are paid, not paid, interrupted, both, or late: in the
// end each that was made is cancelled once, unless it was paid.
func sceneSaga(s *stage) {
	in := trip{ID: s.name, Parts: []string{"flight", "hotel", "car"}[:1+s.dice.IntN(3)], Rest: span(s.dice.IntN(int(most.Milliseconds()) / 6))}
	parts := slices.Clone(in.Parts)
	if len(parts) > 1 {
		parts = append(slices.Delete(parts, 1, 2), "hotel-a", "hotel-b")
	}
	how := s.dice.IntN(5)
	flow := "f_saga"
	if how == 4 {
		flow = "f_saga_within"
	}
	job := s.start(flow, "", in)
	s.wait(most)
	if how <= 1 {
		s.signal("saga-paid", job.Key, "once", how == 0, quipu.Keep(time.Hour))
	}
	switch how {
	case 2:
		s.interrupt(job, quipu.Code(475))
		s.fails(job, journal.JobInterrupted, 475, "enough")
	case 3:
		s.signal("saga-paid", job.Key, "once", false)
		s.wait(most)
		s.interrupt(job, quipu.Code(475))
		if v := s.end(job); v.State == journal.JobFailed {
			s.fails(job, journal.JobFailed, 402, "not paid")
		} else {
			s.fails(job, journal.JobInterrupted, 475, "enough")
		}
		if s.became("saga-paid", job.Key, "once") == quipu.SignalKept {
			s.kept(1)
		}
	case 4:
		if v := s.end(job); v.State != journal.JobFailed || v.Code != 408 {
			s.fail(&job, "job %s ended %s with %d %+v", job.Key, v.State, v.Code, v.Error)
		}
	case 0:
		s.gives(job, `"`+s.name+`"`)
	case 1:
		s.fails(job, journal.JobFailed, 402, "not paid")
	}
	if cancel := "cancel %s " + s.name; how == 1 && len(in.Parts) == 3 {
		for _, both := range []string{"hotel-a", "hotel-b"} {
			s.inOrder(fmt.Sprintf(cancel, "car"), fmt.Sprintf(cancel, both), fmt.Sprintf(cancel, "flight"))
		}
	}
	for _, part := range parts {
		book, cancel := "book "+part+" "+s.name, "cancel "+part+" "+s.name
		switch how {
		case 0:
			s.applied(book)
		case 1:
			s.applied(book)
			s.applied(cancel)
			s.inOrder(book, cancel)
		default:
			s.perhaps(book)
			s.perhaps(cancel)
			s.cancelled(book, cancel)
		}
	}
}

// sceneBank: money is moved in Tx effects; see checkBank.
func sceneBank(s *stage) {
	moves := make([]move, 2*(1+s.dice.IntN(3)))
	for i := range moves {
		moves[i] = move{ID: fmt.Sprint(s.name, "/", i), From: 1 + s.dice.IntN(bankAccounts), To: 1 + s.dice.IntN(bankAccounts), Amount: 1 + s.dice.IntN(60)}
	}
	job := s.start("f_bank", "", map[string]any{"moves": moves, "nap": s.dice.IntN(200)})
	if s.dice.IntN(4) == 0 {
		s.wait(most)
		s.interrupt(job, quipu.Code(476))
		if v := s.end(job); v.State != journal.JobCompleted {
			s.fails(job, journal.JobInterrupted, 476, "enough")
			return
		}
	}
	if v := s.end(job); v.State != journal.JobCompleted {
		s.fail(&job, "job %s ended %s with %d %+v", job.Key, v.State, v.Code, v.Error)
	}
	s.c.scenes.mu.Lock()
	defer s.c.scenes.mu.Unlock()
	for _, m := range moves {
		s.c.scenes.moves = append(s.c.scenes.moves, m.ID)
	}
}

// sceneProof: Guarded calls whose verifier knows: nobody parks, and each is applied
// once (3.3).
func sceneProof(s *stage) {
	in := nap{ID: s.name}
	for i := range 1 + s.dice.IntN(4) {
		in.Naps = append(in.Naps, span(s.dice.IntN(200)))
		s.applied(fmt.Sprintf("proved %s/%d", s.name, i))
	}
	s.gives(s.start("f_proof", "", in), `"`+s.name+`"`)
}

// sceneNew: the code of a function changes under it.
func sceneNew(s *stage) {
	in := nap{ID: s.name, Naps: []span{0, span(s.dice.IntN(300)), span(s.dice.IntN(300))}}
	job := s.start("f_new", "", in)
	way := 0
	if v := s.end(job); strings.Contains(string(v.Output), `"way":1`) {
		way = 1
	}
	s.gives(job, fmt.Sprintf(`{"way":%d,"end":2}`, way))
	s.applied(fmt.Sprintf("tick %s/way %d", s.name, way))
	s.applied("tick " + s.name + "/end 2")
}

// sceneTx: a job that begins with an effect, and a signal that is sent with one:
// exactly one of each (E17).
func sceneTx(s *stage) {
	asker := s.start("asker", ".asker", map[string]any{"key": s.name + ".asker"})
	job := s.start("f_tx", "", nap{ID: s.name})
	var got struct{ Key, From string }
	v := s.end(job)
	if err := json.Unmarshal(v.Output, &got); v.State != journal.JobCompleted || err != nil || got.Key == "" || got.From != got.Key {
		s.fail(&job, "job %s ended %s with %d: %s %+v", job.Key, v.State, v.Code, v.Output, v.Error)
	}
	s.also(got.Key)
	s.gives(asker, `"`+got.Key+`"`)
	teller, found := s.find(got.Key)
	if !found {
		s.fail(&job, "E17: the job %s is not there", got.Key)
	}
	s.gives(teller, `{"told":true}`)
}

// sceneWaits: a function that waits is interrupted with its child, or its child is.
func sceneWaits(s *stage) {
	job := s.start("f_wait", "", order{ID: s.name})
	s.wait(most)
	if s.dice.IntN(2) == 0 {
		s.interrupt(job, quipu.Descend(true), quipu.Code(477))
		s.fails(job, journal.JobInterrupted, 477, "enough")
		if kid, found := s.find(s.name + ".kid"); found {
			s.fails(kid, journal.JobInterrupted, 477, "enough")
		}
		return
	}
	var kid quipu.Job
	s.until("the child", &job, func() (found bool, _ error) {
		kid, found = s.find(s.name + ".kid")
		return found, nil
	})
	s.signal("waits", s.name, "once", "go on")
	s.interrupt(kid, quipu.Code(478))
	if v := s.end(job); v.State != journal.JobFailed || v.Code != 478 {
		s.fail(&job, "job %s ended %s with %d %+v", job.Key, v.State, v.Code, v.Error)
	}
	if became := s.became("waits", s.name, "once"); became != quipu.SignalConsumed {
		s.fail(&job, "E13: the signal is %s", became)
	}
}

// sceneFnEach: functions as elements, a few at a time.
func sceneFnEach(s *stage) {
	lines, out := make([]map[string]any, s.dice.IntN(7)), []any{}
	for i := range lines {
		naps, fail := s.naps(fmt.Sprintf("%s-%d", s.name, i), 3), ""
		gives := map[string]any{"code": 200, "output": map[string]any{"naps": len(naps)}}
		if s.dice.IntN(5) == 0 {
			fail = fmt.Sprint("bad line ", i)
			gives = map[string]any{"code": 422, "error": map[string]any{"class": "business", "code": 422, "message": fail}}
		}
		lines[i] = map[string]any{"naps": naps, "fail": fail}
		out = append(out, gives)
	}
	want, _ := json.Marshal(out)
	s.gives(s.start("f_each", "", map[string]any{"lines": lines}), string(want))
}

// sceneCall: several callers of one recorded call get the one result (E14).
func sceneCall(s *stage) {
	naps, fail := s.naps(s.name, 3), ""
	if s.dice.IntN(3) == 0 {
		fail = "no call"
	}
	s.also(s.name)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range 1 + s.dice.IntN(3) {
		one := &stage{c: s.c, ctx: s.ctx, name: s.name, dice: s.c.dice(fmt.Sprintf("%s caller %d", s.name, i))}
		wg.Go(func() { one.call(naps, fail) })
	}
}

func (s *stage) call(naps []span, fail string) {
	s.wait(most)
	s.until("the call", nil, func() (bool, error) {
		out, err := s.c.rt.Call(s.ctx, "f_naps", s.name, nap{ID: s.name, Naps: naps, Fail: fail})
		if failed := (*quipu.JobError)(nil); errors.As(err, &failed) {
			if fail == "" || failed.Code != 422 {
				job, _ := s.find(s.name)
				s.fail(&job, "the call of %s ended with %v", s.name, err)
			}
			return true, nil
		}
		if err == nil && (fail != "" || string(out) != fmt.Sprintf(`{"naps":%d}`, len(naps))) {
			s.fail(nil, "the call of %s gives %s", s.name, out)
		}
		return true, err
	})
}

const bankAccounts = 8

// openBank makes the tables of the user's.
func (c *chaos) openBank() {
	t := c.e.t
	conn, err := pgx.Connect(t.Context(), c.e.dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `CREATE TABLE notes (id text); CREATE TABLE transfers (id text);
		CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO accounts SELECT n, 100 FROM generate_series(1, $1::int) n`, bankAccounts)
	require.NoError(t, err)
}

// checkBank holds the bank to I13: nothing is gained or lost, and no move was made
// twice; those of jobs that completed were made.
func (c *chaos) checkBank() {
	t := c.e.t
	conn, err := pgx.Connect(t.Context(), c.e.dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var total, lowest int
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT sum(balance), min(balance) FROM accounts").Scan(&total, &lowest))
	assert.Equal(t, bankAccounts*100, total, "I13")
	assert.GreaterOrEqual(t, lowest, 0, "I13")
	rows, err := conn.Query(t.Context(), "SELECT id FROM transfers")
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	made := map[string]int{}
	for _, id := range ids {
		made[id]++
		assert.Equal(t, 1, made[id], "I13: move %s", id)
	}
	for _, id := range c.scenes.moves {
		assert.Equal(t, 1, made[id], "I13: move %s of a job that completed", id)
	}
}
