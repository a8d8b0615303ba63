package journaltest

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var commits = map[string]func(*bench){
	"load after a commit is the state that was applied": commitLoad,
	"several messages of one job are one commit (J6)":   commitSeveral,
	"batches of many sizes (J6)":                        commitBatches,
	"a batch is whole or not at all (J6)":               commitAtomic,
	"a session counts its commits (L1)":                 commitSession,
	"a stale message leaves a receipt of value 0 (1.7)": commitStale,
	"a quarantined job is loaded as such (J1)":          commitQuarantine,
}

// commitLoad runs a job. Before every plan it compares what is loaded with the state that the
// plans so far were applied to.
func commitLoad(b *bench) {
	id := b.start(b.deploy(fork), "k")
	want := []*collation.Message{message(&b.view(id).Rows[0])}
	instances := map[collation.InstanceKey]*collation.Instance{}
	for len(want) > 0 {
		m := want[0]
		l := got(b.load(b.c, m))(b)
		st := l.States[id]
		ch := got(b.decide(b.c, st, m))(b)
		require.NoError(b, b.c.Commit(b.ctx(), []store.Chained{ch}))
		again := got(b.load(b.c, m))(b)
		require.NoError(b, b.c.Rollback(b.ctx()))
		got := again.States[id]
		require.Equal(b, st.Job, got.Job)
		require.Equal(b, st.Instances[collation.InstanceKey{Activity: m.Activity, DAD: m.DAD}],
			got.Instances[collation.InstanceKey{Activity: m.Activity, DAD: m.DAD}])
		require.Equal(b, st.Rows[m.Row], got.Rows[m.Row])
		for key, i := range st.Instances {
			instances[key] = i
		}
		if receipt := got.Receipts[m.GUID]; receipt != nil {
			require.Equal(b, st.Receipts[m.GUID].Ledger, receipt.Ledger)
		}
		want = want[1:]
		for _, r := range ch.Plan.Insert {
			next := message(&r)
			if r.Kind == journal.MessageRequest {
				next = response(&r, success(`{"by":"`+r.Activity+`"}`))
			}
			want = append(want, next)
		}
	}
	v := b.view(id)
	require.True(b, v.Ended)
	for _, i := range v.Instances {
		require.Equal(b, *instances[i.Key], i.Instance)
	}
}

// commitSeveral decides two responses and what they cause in one transaction.
func commitSeveral(b *bench) {
	id := b.requested(fork, "k")
	left, right := b.request(id, "left"), b.request(id, "right")
	ms := []*collation.Message{response(&left, success(`1`)), response(&right, success(`2`))}
	l := got(b.load(b.c, ms...))(b)
	var plans []store.Chained
	for i := 0; i < len(ms); i++ {
		ch := got(b.decide(b.c, l.States[id], ms[i]))(b)
		plans = append(plans, ch)
		for _, r := range ch.Plan.Insert {
			if r.Kind == journal.MessageLeg1 { // its receipt was not asked for, and a Leg1 has no receipt
				l.States[id].Instances[collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}] = nil
				ms = append(ms, message(&r))
			}
		}
	}
	require.Len(b, plans, 3)
	require.NoError(b, b.c.Commit(b.ctx(), plans))
	require.Equal(b, l.States[id].Job, b.view(id).JobSummary.Job)
	b.answer(id, "next", success(`3`))
	require.Equal(b, journal.JobCompleted, b.view(id).State)
}

func commitBatches(b *bench) {
	f := b.deploy(one)
	for _, n := range []int{1, 3, 50, store.MaxBatch} {
		var list []store.Start
		for i := range n {
			list = append(list, starting(f, fmt.Sprintf("%d of %d", i, n), `{"n":1}`))
		}
		out := got(b.s.Start(b.ctx(), list, b.mode))(b)
		var ms []*collation.Message
		for _, o := range out {
			ms = append(ms, &collation.Message{
				Kind: journal.MessageStart, Job: o.Job, GUID: o.Job.Start(), Row: o.Job.Start(), Activity: "start", DAD: collation.RootDAD,
			})
		}
		for len(ms) > 0 {
			ms = b.batch(b.c, ms)
		}
		ids := make([]journal.JobID, n)
		for i, o := range out {
			ids[i] = o.Job
		}
		ended := got(b.s.Ended(b.ctx(), ids))(b)
		require.Len(b, ended, n)
		for _, id := range ids {
			require.True(b, ended[id])
		}
	}
}

// batch handles messages of different jobs in one transaction, and returns the messages that they
// cause.
func (b *bench) batch(c store.Committer, ms []*collation.Message) []*collation.Message {
	b.Helper()
	l := got(b.load(c, ms...))(b)
	var plans []store.Chained
	var next []*collation.Message
	for _, m := range ms {
		ch := got(b.decide(c, l.States[m.Job], m))(b)
		plans = append(plans, ch)
		for _, r := range ch.Plan.Insert {
			if r.Kind == journal.MessageRequest {
				next = append(next, response(&r, success(`{}`)))
			} else {
				next = append(next, message(&r))
			}
		}
	}
	require.NoError(b, c.Commit(b.ctx(), plans))
	return next
}

func commitAtomic(b *bench) {
	f := b.deploy(one)
	var ms []*collation.Message
	var before []*store.JobView
	for i := range 5 {
		id := b.start(f, fmt.Sprint(i))
		before = append(before, b.view(id))
		ms = append(ms, message(&before[i].Rows[0]))
	}
	for poisoned := range ms {
		l := got(b.load(b.c, ms...))(b)
		var plans []store.Chained
		for i, m := range ms {
			ch := got(b.decide(b.c, l.States[m.Job], m))(b)
			if i == poisoned {
				ch.Plan.Delete = append(ch.Plan.Delete, journal.GUID{1})
			}
			plans = append(plans, ch)
		}
		require.ErrorIs(b, b.c.Commit(b.ctx(), plans), store.ErrLost)
		for i := range ms {
			require.Equal(b, before[i], b.view(before[i].ID), "job %d of a batch with message %d lost", i, poisoned)
		}
	}
	b.batch(b.c, ms)
}

func commitSession(b *bench) {
	d := b.committer()
	s1, seq := b.c.Session()
	require.Zero(b, seq)
	s2, _ := d.Session()
	require.NotEqual(b, s1, s2)
	id := b.start(b.deploy(one), "k")
	for i := range 2 {
		for _, r := range b.view(id).Rows {
			b.must(message(&r))
		}
		s, seq := b.c.Session()
		require.Equal(b, s1, s)
		require.Equal(b, int64(i+1), seq)
	}
	n := got(b.s.Prune(b.ctx(), 100))(b)
	require.Zero(b, n, "the markers of living sessions stay (J4)")
}

func commitStale(b *bench) {
	b.odd = true
	id := b.requested(one, "k")
	r := b.request(id, "work")
	l := got(b.load(b.c, response(&r, nil)))(b)
	p := handmade(l.States[id], response(&r, nil))
	g := journal.GUID{6: 0x80, 8: 0x80, 15: 1}
	p.Entry.Kind, p.Entry.Operator = journal.KindStale, nil
	p.Receipt = &collation.ReceiptWrite{GUID: g, New: true, Verdict: journal.VerdictStale, Seq: p.Entry.Seq}
	require.NoError(b, b.c.Commit(b.ctx(), []store.Chained{store.Chain(&l.States[id].Job, p)}))
	l = b.locked(b.c, store.Want{Job: id, Receipt: g})
	require.Equal(b, &collation.Receipt{Verdict: journal.VerdictStale, Seq: p.Entry.Seq}, l.States[id].Receipts[g])
	require.NoError(b, b.c.Rollback(b.ctx()))
}

func commitQuarantine(b *bench) {
	f := b.deploy(one)
	id := b.start(f, "k")
	m := message(&b.view(id).Rows[0])
	l := got(b.load(b.c, m))(b)
	st := l.States[id]
	p := collation.Quarantine(st, m, b.mode, fmt.Errorf("a digit is wrong"))
	require.NoError(b, b.c.Commit(b.ctx(), []store.Chained{store.Chain(&st.Job, p)}))
	require.Equal(b, journal.JobQuarantined, b.view(id).State)
	due, _, err := b.s.Due(b.ctx(), 10)
	require.NoError(b, err)
	require.Empty(b, due, "the sweeper leaves a quarantined job alone (C16)")
	p = got(b.handle(b.c, m))(b)
	require.Equal(b, collation.Quarantined, p.Outcome)
}

func loadResults(b *bench) {
	id := b.requested(fork, "k")
	b.answer(id, "left", success(`{"x":1.5}`))
	keys := map[string]collation.InstanceKey{
		"start": {Activity: "start", DAD: ",0"}, "left": {Activity: "left", DAD: ",0,0"},
		"right": {Activity: "right", DAD: ",0,0"}, "other": {Activity: "left", DAD: ",0,1"},
	}
	l, err := b.c.Load(b.ctx(), []store.Want{{Job: id, Results: []collation.InstanceKey{
		keys["start"], keys["left"], keys["right"], keys["other"],
	}}}, true)
	require.NoError(b, err)
	require.NoError(b, b.c.Rollback(b.ctx()))
	require.Equal(b, map[collation.InstanceKey]*flow.Result{
		keys["start"]: {Ran: true, Code: collation.CodeOK, Output: []byte(`{"n":7}`)},
		keys["left"]:  {Ran: true, Code: collation.CodeOK, Output: []byte(`{"x":1.5}`)},
		keys["right"]: nil, // asked for its answer, which has not come
		keys["other"]: nil,
	}, l.States[id].Results)
}

func loadPayload(b *bench) {
	id := b.requested(one, "k")
	body := []byte(`{"large":"` + strings.Repeat("x", 300<<10) + `"}`)
	digest := journal.Digest(sha256.Sum256(body))
	require.NoError(b, b.s.PutPayload(b.ctx(), id, digest, body))
	require.NoError(b, b.s.PutPayload(b.ctx(), id, digest, body), "stored once")
	b.answer(id, "work", &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Ref: digest})
	require.Equal(b, `{"got":`+string(body)+`}`, string(b.view(id).Output))
	key := collation.InstanceKey{Activity: "work", DAD: ",0,0"}
	l := b.look(store.Want{Job: id, Results: []collation.InstanceKey{key}})
	require.Equal(b, string(body), string(l.States[id].Results[key].Output))
	read := got(b.s.Payload(b.ctx(), id, digest))(b)
	require.Equal(b, string(body), string(read))
	_, err := b.s.Payload(b.ctx(), id, journal.Digest{1})
	require.ErrorIs(b, err, store.ErrNotFound)
}
