package expr_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// Expressions of one shape share a program; the place in a message is that of each text.
func TestClashNamesThePlaceInItsOwnText(t *testing.T) {
	t.Parallel()
	c := expr.NewCompiler()
	for source, message := range map[string]string{
		`item + b.error`:         "+ cannot be applied to an object and null (column 6 of the expression)",
		`a.output + b.error`:     "+ cannot be applied to an object and null (column 10 of the expression)",
		`job.id + b.code`:        "+ cannot be applied to a string and a number (column 8 of the expression)",
		`!(job.id == item.gone)`: "no such key: gone",
	} {
		program, problems := c.Compile(source, data)
		require.Empty(t, problems)
		_, err := program.AppendJSON(nil, data)
		require.EqualError(t, err, message, source)
	}
}

// A program that fails may be evaluated by many at once.
func TestClashesAtTheSameTime(t *testing.T) {
	t.Parallel()
	program, problems := expr.NewCompiler().Compile(`a.output.list.map(x, x && true)`, data)
	require.Empty(t, problems)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := program.AppendJSON(nil, data)
			assert.ErrorContains(t, err, "&& cannot be applied to a number (column 24 of the expression)")
		})
	}
	all.Wait()
}
