package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Two deliveries of one message in one batch: a transaction steps a message with steps left
// only once, because its next step reads what this one commits.
func TestOneStepPerTransaction(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, st := over(t, &hooked{}, Config{Stepwise: true})
	job := startsOne(t, st, deployed(t, st, oneWorker("1")), collation.Mode{Stepwise: true, Resend: 1e6})
	twice := func(m collation.Message) (*item, *item) {
		return &item{epoch: 1, msg: m, flow: flowKey{"one", "1"}}, &item{epoch: 1, msg: m, flow: flowKey{"one", "1"}}
	}
	a, again := twice(collation.Message{Kind: journal.MessageStart, Job: job, GUID: job.Start(), Row: job.Start(), Activity: "start", DAD: collation.RootDAD})
	b, err := c.transact(ctx, work{items: []*item{a, again}})
	require.NoError(t, err)
	require.Len(t, b.decided, 2, "done in one step: the second finds it settled")
	leg1 := b.plans[0].Plan.Insert[0]
	a, again = twice(collation.Message{Kind: journal.MessageLeg1, Job: job, GUID: leg1.GUID, Row: leg1.GUID, Activity: "a", DAD: leg1.DAD})
	b, err = c.transact(ctx, work{items: []*item{a, again}})
	require.NoError(t, err)
	require.Equal(t, []*item{a}, b.decided)
	require.Equal(t, []*item{again}, b.repeats)
}
