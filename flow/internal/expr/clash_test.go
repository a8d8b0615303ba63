package expr_test

import (
	"testing"

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
