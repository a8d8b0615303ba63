package flow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
)

// The limits of a list. Values and errors are in testdata/transcripts/values.txt.
func TestEach(t *testing.T) {
	t.Parallel()
	list := with(t, `type: worker, topic: a, each: "start.output"`)
	most := "[" + strings.Repeat("1,", flow.MaxElements-1) + "1]"
	elements, err := list.Each(results{"start": ran(most)})
	require.NoError(t, err)
	require.Len(t, elements, flow.MaxElements)
	_, err = list.Each(results{"start": ran("[1," + most[1:])})
	require.EqualError(t, err, "each of x: ${ start.output }: the list has 10001 elements, at most 10000 are allowed")
	_, err = list.Each(results{"start": ran(`["` + strings.Repeat("x", flow.MaxMappedBytes) + `"]`)})
	require.ErrorContains(t, err, "the list has 1048580 bytes, at most 1048576 are allowed")
}

func TestMapNeeds(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"start", "x"}, with(t, `type: worker, topic: a, output: "${ x.output.id + start.output }"`).MapNeeds())
	require.False(t, with(t, `type: worker, topic: a`).HasOutput())
}

// A result that was not loaded is the caller's mistake, not the flow's.
func TestResultThatWasNotLoaded(t *testing.T) {
	t.Parallel()
	_, err := with(t, `type: worker, topic: a, input: "${ h.output }"`).Input(results{})
	require.ErrorContains(t, err, "the result of h was not loaded")
	require.Error(t, errors.Unwrap(err))
}
