package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpressions(t *testing.T) {
	t.Parallel()
	env := func(name string) any {
		return map[string]any{"output": map[string]any{"v": 4}, "code": 200, "error": nil, "list": []any{1, 2}}
	}
	for source, want := range map[string]any{
		"1 + 2 * 3 - 4 % 3":                   6,
		"(a.output == null ? 3 : a.output.v)": 4,
		"a.error == null ? 1 : a.error.code":  1,
		"a.list[1] + size(a.list)":            4,
		"[1, 'x', \"y\", null, true]":         []any{1, "x", "y", nil, true},
		"a.code == 200 && !(1 > 2) || false":  true,
		"a.none == 1 && a.code == 503":        false,
		"a.code == 503 && a.none == 1":        false,
		"a.code == 200 || a.none == 1":        true,
		"a.none == 1 || a.code == 200":        true,
	} {
		v, err := evaluate(source, env)
		require.NoError(t, err, source)
		require.Equal(t, want, v, source)
	}
	for _, source := range []string{
		"a.none", "a.error.code", "a.output + 1", "a.none == 1 || a.code == 503", "a.code == 200 && a.none == 1", "a.list[2]", "a.code ? 1 : 2",
	} {
		_, err := evaluate(source, env)
		require.Error(t, err, source)
	}
	v, err := template("x-${ a.code }-${ a.output }", env)
	require.NoError(t, err)
	require.Equal(t, `x-200-{"v":4}`, v)
	require.Panics(t, func() { _, _ = evaluate("1 +", env) })
	require.Panics(t, func() { _, _ = evaluate("1 2", env) })
}
