package quipu_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu"
)

// The tables of a job are compared with its journal. What differs is written anew from the
// journal, with an entry that says who decided and why.
func ExampleOperator_Fsck() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()
	job, err := rt.Start(ctx, "approval", "order-42", map[string]int{"total": 1})
	must(err)

	var found quipu.Findings
	found, err = rt.Operator().Fsck(ctx, job.ID)
	must(err)
	for _, d := range found.Differences {
		var d quipu.Difference = d
		fmt.Println(d.Table, d.Row, d.Column, "is", d.Stored, "and not", d.Journal)
	}
	fmt.Println(found.Job.Key, found.State, len(found.Differences), found.Broken == "")
	if found.State == "quarantined" && found.Broken == "" {
		_, err = rt.Operator().Repair(ctx, job.ID, "ann", "the disk was replaced")
		must(err)
	}
	_, err = rt.Operator().Repair(ctx, job.ID, "ann", "to be sure")
	fmt.Println(errors.Is(err, quipu.ErrRepair), err)
	// Output:
	// order-42 open 0 true
	// true job "order-42": refused to repair: it is open: only a quarantined or a closed job is repaired
}
