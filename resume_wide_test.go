package quipu_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/workers"
)

const wide = `
flow: wide
version: "1"
output: {before: "${ before.output }", all: "${ all.output.size() }"}
activities:
  start:  {type: trigger}
  before: {type: worker, topic: before}
  all:    {type: worker, topic: all, each: start.output.list, PARALLEL input: "${ item }", retry: {attempts: 1}}
transitions: {start: [before], before: [all]}
`

// J6: a job with a long list is resumed and forked as one with a short list is, from the start of
// the list, from an activity before it, and element by element.
func TestResumeOfWideLists(t *testing.T) {
	t.Parallel()
	for name, parallel := range map[string]string{"at once": "", "one by one": "parallel: 1,"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newTally("70")
			reg := workers.New()
			work := func(name string) (int, error) {
				_, err := o.do(name)
				return 1, workers.Fatal(err)
			}
			workers.Handle(reg, "before", func(context.Context, any) (int, error) { return work("before") })
			workers.Handle(reg, "all", func(_ context.Context, n int) (int, error) { return work(fmt.Sprint(n)) })
			s := newSpaceOf(t, reg, strings.Replace(wide, "PARALLEL", parallel, 1))
			list := make([]int, 70)
			for i := range list {
				list[i] = i + 1
			}
			job := s.begin("wide", "w", map[string]any{"list": list})
			require.Contains(t, s.failed(job).Error(), "70")
			fork := s.forked("w", s.results(job)["before"], "w-fork")
			require.Contains(t, s.failed(fork).Error(), "70", "it has no element, and asks for all")
			require.Contains(t, s.failed(s.resumed("w")).Error(), "70", "all but one have succeeded")
			require.Contains(t, s.failed(s.resumed("w", quipu.From("before"))).Error(), "70", "all are done again")
			require.Equal(t, []int{2, 3, 3, 4}, []int{o.count()["before"], o.count()["1"], o.count()["69"], o.count()["70"]})
			o.mend("70")
			s.output(s.resumed("w"), `{"all":70,"before":1}`)
			s.output(s.resumed("w-fork"), `{"all":70,"before":1}`)
			s.proved()
		})
	}
}
