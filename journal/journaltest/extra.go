package journaltest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// extras test what instances have besides their digits, and what decisions load later.
var extras = map[string]func(*bench){
	"an instance keeps what is beside its digits, field by field":    extraFields,
	"more elements cannot end than are open (V6)":                    extraOpen,
	"join digits only grow (C1)":                                     extraJoinBack,
	"a row of ledger 0 points to an output and is no ledger (1.9)":   extraPointer,
	"the latest result of an activity, whatever its address (5.1)":   extraLatest,
	"the job that has a key (1.11)":                                  extraKeys,
	"how the job was closed":                                         extraClose,
	"rows by their names, of whichever job (J2)":                     extraRows,
	"what was loaded before stays as plans have moved it (J6)":       extraStays,
	"when a closed job is to be removed stands in its view":          extraExpires,
	"several plans of a batch move one instance, and its rest (J6)":  extraBatch,
	"an instance and its rest are written whole or not at all (C3)":  extraLost,
	"results of elements and of the whole are told apart by address": extraElements,
}

// workKey is the instance that cases write by hand.
var workKey = collation.InstanceKey{Activity: "work", DAD: ",0,0"}

// instance reads one instance of a job.
func (b *bench) instance(id journal.JobID, key collation.InstanceKey) *collation.Instance {
	b.Helper()
	return b.more(id, collation.Need{Instances: []collation.InstanceKey{key}}).Instances[key]
}

var fullMore = collation.More{
	Leg1: guid(1), Open: 3, Count: 5, Size: 1 << 40, Turn: 2, Attempt: 4, Child: journal.JobID(guid(2)),
}

func extraFields(b *bench) {
	id := b.jobs(1)[0]
	b.altered(id, all(
		ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: fullMore}),
		func(p *collation.Plan, _ *collation.State) {
			p.Entry.Activity, p.Entry.DAD, p.Entry.Open = workKey.Activity, string(workKey.DAD), new(int)
			*p.Entry.Open = 3
		},
	))
	require.Equal(b, &collation.Instance{Ledger: 1_100_000_000_000, More: fullMore}, b.instance(id, workKey))
	v := b.view(id)
	require.Equal(b, store.InstanceView{Key: workKey, Instance: collation.Instance{Ledger: 1_100_000_000_000, More: fullMore}}, v.Instances[1])
	trigger := b.instance(id, collation.InstanceKey{Activity: "start", DAD: ",0"})
	require.Zero(b, trigger.More)
}

func extraOpen(b *bench) {
	id := b.jobs(1)[0]
	write := collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: collation.More{Open: -1}}
	requireOneOf(b, b.alter(id, ledgers(write)), store.ErrLost, store.ErrRejected)
	write.Open = 1
	b.altered(id, all(ledgers(write), opens(1)))
	write.New, write.Before, write.Open = false, write.After, -1
	requireOneOf(b, b.alter(id, ledgers(write)), store.ErrLost, store.ErrRejected)
	require.Equal(b, 1, b.instance(id, workKey).Open)
}

// opens sets the number of open elements of that instance.
func opens(left int) change {
	return func(p *collation.Plan, _ *collation.State) {
		p.Entry.Activity, p.Entry.DAD = workKey.Activity, string(workKey.DAD)
		p.Entry.Open = &left
	}
}

func extraJoinBack(b *bench) {
	id := b.jobs(1)[0]
	write := collation.LedgerWrite{Key: workKey, New: true, Join: true, After: 10_200_000_000}
	b.altered(id, ledgers(write))
	write.New, write.Before = false, write.After
	for _, after := range []collation.ActivityLedger{
		10_100_000_000, 200_000_000, 300_000_000, 20_000_000_000, 20_200_000_000, 100_000_000_000 + 10_200_000_000, 0,
	} {
		write.After = after
		err := b.alter(id, ledgers(write))
		require.Error(b, err, "%s → %s", write.Before, after)
		requireOneOf(b, err, store.ErrLost, store.ErrRejected)
	}
	other := collation.LedgerWrite{Key: collation.InstanceKey{Activity: "work", DAD: ",0,1"}, New: true, After: 100_000_000}
	requireOneOf(b, b.alter(id, ledgers(other)), store.ErrLost, store.ErrRejected)
	other.After = 1_000_000_000_000
	b.altered(id, ledgers(other))
	other.New, other.Before, other.After = false, other.After, 1_000_100_000_000
	requireOneOf(b, b.alter(id, ledgers(other)), store.ErrLost, store.ErrRejected)
}

// results adds a result of the plan's own entry, at an address.
func results(key collation.InstanceKey, fresh bool, output string) change {
	return func(p *collation.Plan, st *collation.State) {
		p.Entry.Result = &journal.Result{Code: collation.CodeOK, Output: []byte(output)}
		p.Entry.Activity, _, _ = strings.Cut(key.Activity, "[")
		p.Entry.DAD = string(key.DAD.Base())
		ledgers(collation.LedgerWrite{Key: key, New: fresh, ResultSeq: p.Entry.Seq, Code: collation.CodeOK})(p, st)
	}
}

func extraPointer(b *bench) {
	id := b.jobs(1)[0]
	pass := collation.InstanceKey{Activity: "work", DAD: ",0,3"}
	b.altered(id, results(pass, true, `"third"`))
	seq := b.view(id).Head.Seq
	require.Len(b, b.view(id).Instances, 1, "the trigger's")
	require.Equal(b, &collation.Instance{ResultSeq: seq, Code: collation.CodeOK}, b.instance(id, pass))
	got := b.more(id, collation.Need{Results: []collation.InstanceKey{pass, workKey}}).Results
	require.Equal(b, map[collation.InstanceKey]*flow.Result{
		pass: {Ran: true, Code: collation.CodeOK, Output: []byte(`"third"`)}, workKey: nil,
	}, got)
	require.ErrorIs(b, b.alter(id, results(pass, true, `"again"`)), store.ErrLost)
	b.altered(id, results(pass, false, `"mapped"`))
	got = b.more(id, collation.Need{Results: []collation.InstanceKey{pass}}).Results
	require.Equal(b, `"mapped"`, string(got[pass].Output))
}

func extraLatest(b *bench) {
	id := b.jobs(1)[0]
	latest := func() map[string]*flow.Result {
		return b.more(id, collation.Need{Latest: []string{"work", "start", "nobody"}}).Latest
	}
	trigger := &flow.Result{Ran: true, Code: collation.CodeOK, Output: []byte(`{"n":7}`)}
	require.Equal(b, map[string]*flow.Result{"work": nil, "start": trigger, "nobody": nil}, latest())
	b.altered(id, ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000}))
	require.Nil(b, latest()["work"], "it has no result yet")
	for _, step := range []struct {
		key  collation.InstanceKey
		want string
	}{
		{collation.InstanceKey{Activity: "work", DAD: ",0,5"}, `"5"`},
		{collation.InstanceKey{Activity: "work", DAD: ",0,2"}, `"2"`},
		{collation.InstanceKey{Activity: "work[0]", DAD: ",0,0"}, `"2"`},
		{collation.InstanceKey{Activity: "works", DAD: ",0,0"}, `"2"`},
		{collation.InstanceKey{Activity: "work", DAD: ",0,0,0"}, `"0"`},
	} {
		output := step.want
		if step.key.Activity != "work" {
			output = `"of another"`
		}
		b.altered(id, results(step.key, true, output))
		require.Equal(b, step.want, string(latest()["work"].Output), "after %v", step.key)
	}
}

func extraKeys(b *bench) {
	ids := b.jobs(2)
	st := b.more(ids[0], collation.Need{Keys: []string{"job-1", "nobody", "job-0"}})
	require.Equal(b, map[string]journal.JobID{"job-0": ids[0], "job-1": ids[1], "nobody": {}}, st.Keys)
}

func extraClose(b *bench) {
	id := b.requested(one, "k")
	require.Nil(b, b.more(id, collation.Need{Close: true}).Close)
	b.answer(id, "work", failure(journal.ResponseTerminal, "declined"))
	got := b.more(id, collation.Need{Close: true}).Close
	require.Equal(b, journal.JobFailed, got.State)
	require.Equal(b, collation.CodeInternal, got.Code)
	require.Equal(b, "declined", got.Error.Message)
	require.Nil(b, b.more(id, collation.Need{AllRows: true}).Close, "not asked for")
}
