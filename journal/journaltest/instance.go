package journaltest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// instances test what instances have besides their digits.
var instances = cases{
	"an instance keeps what is beside its digits, field by field":    instanceFields,
	"a row of ledger 0 points to an output and is no ledger (1.9)":   instancePointer,
	"the latest result of an activity, whatever its address (5.1)":   instanceLatest,
	"results of elements and of the whole are told apart by address": instanceElements,
}

// instance reads one instance of a job.
func (b *bench) instance(id journal.JobID, key collation.InstanceKey) *collation.Instance {
	b.Helper()
	return b.more(id, collation.Need{Instances: []collation.InstanceKey{key}}).Instances[key]
}

var fullMore = collation.More{
	Leg1: guid(1), Open: 3, Count: 5, Size: 1 << 40, Turn: 2, Attempt: 4, Child: journal.JobID(guid(2)),
}

func instanceFields(b *bench) {
	id := b.jobs(1)[0]
	b.altered(id, ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000, More: fullMore}), opens(3))
	want := collation.Instance{Ledger: 1_100_000_000_000, More: fullMore}
	require.Equal(b, &want, b.instance(id, workKey))
	require.Equal(b, store.InstanceView{Key: workKey, Instance: want}, b.view(id).Instances[1])
	require.Zero(b, b.instance(id, startKey).More)
}

// opens sets the number of open elements of that instance.
func opens(left int) change {
	return func(p *collation.Plan, _ *collation.State) {
		p.Entry.Activity, p.Entry.DAD = workKey.Activity, string(workKey.DAD)
		p.Entry.Open = &left
	}
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

func instancePointer(b *bench) {
	id := b.jobs(1)[0]
	pass := collation.InstanceKey{Activity: "work", DAD: ",0,3"}
	b.altered(id, results(pass, true, `"third"`))
	v := b.view(id)
	require.Len(b, v.Instances, 1, "the trigger's")
	require.Equal(b, &collation.Instance{ResultSeq: v.Head.Seq, Code: collation.CodeOK}, b.instance(id, pass))
	require.Equal(b, map[collation.InstanceKey]*flow.Result{
		pass: {Ran: true, Code: collation.CodeOK, Output: []byte(`"third"`)}, workKey: nil,
	}, b.more(id, collation.Need{Results: []collation.InstanceKey{pass, workKey}}).Results)
	require.ErrorIs(b, b.alter(id, results(pass, true, `"again"`)), store.ErrLost)
	b.altered(id, results(pass, false, `"mapped"`))
	require.Equal(b, `"mapped"`, string(b.more(id, collation.Need{Results: []collation.InstanceKey{pass}}).Results[pass].Output))
}

func instanceLatest(b *bench) {
	id := b.jobs(1)[0]
	latest := func() map[string]*flow.Result {
		return b.more(id, collation.Need{Latest: []string{"work", "start", "nobody"}}).Latest
	}
	trigger := &flow.Result{Ran: true, Code: collation.CodeOK, Output: []byte(`{"n":7}`)}
	require.Equal(b, map[string]*flow.Result{"work": nil, "start": trigger, "nobody": nil}, latest())
	b.altered(id, ledgers(collation.LedgerWrite{Key: workKey, New: true, After: 1_100_000_000_000}))
	require.Nil(b, latest()["work"], "it has no result yet")
	for _, step := range []struct {
		key          collation.InstanceKey
		output, want string
	}{
		{collation.InstanceKey{Activity: "work", DAD: ",0,5"}, `"5"`, `"5"`},
		{collation.InstanceKey{Activity: "work", DAD: ",0,2"}, `"2"`, `"2"`},
		{collation.InstanceKey{Activity: "work[0]", DAD: ",0,0"}, `"of an element"`, `"2"`},
		{collation.InstanceKey{Activity: "works", DAD: ",0,0"}, `"of another"`, `"2"`},
		{collation.InstanceKey{Activity: "work", DAD: ",0,0,0"}, `"0"`, `"0"`},
	} {
		b.altered(id, results(step.key, true, step.output))
		require.Equal(b, step.want, string(latest()["work"].Output), "after %v", step.key)
	}
}

// instanceElements lets one entry hold the result of an element and that of its list.
func instanceElements(b *bench) {
	b.odd = true
	id := b.jobs(1)[0]
	element := collation.InstanceKey{Activity: "work[1]", DAD: workKey.DAD}
	b.altered(id, func(p *collation.Plan, st *collation.State) {
		p.Entry.Kind, p.Entry.Operator = journal.KindLeg2, nil
		p.Entry.Response = &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(`1`), Element: 1}
		results(element, true, `[0,1]`)(p, st)
		ledgers(collation.LedgerWrite{
			Key: workKey, New: true, After: 1_100_000_000_000, ResultSeq: p.Entry.Seq, Code: collation.CodeOK,
		})(p, st)
	})
	st := b.more(id, collation.Need{Results: []collation.InstanceKey{element, workKey}, Latest: []string{"work"}})
	require.Equal(b, []string{`1`, `[0,1]`, `[0,1]`},
		[]string{string(st.Results[element].Output), string(st.Results[workKey].Output), string(st.Latest["work"].Output)})
}
