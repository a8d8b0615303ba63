package view_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/view"
)

// A span comes back from JSON as it was, with its attributes in their order.
func TestSpansComeBack(t *testing.T) {
	t.Parallel()
	was := view.Span{
		ID: view.SpanID{1}, Parent: view.SpanID{2}, Part: "run", About: "a", Kind: view.Consumer, Start: 1_700_000_000_000_001,
		Attributes: []view.Attribute{{Key: "z", Text: "<one>"}, {Key: "a", Number: 1<<62 + 1}, {Key: "none"}},
		Failure:    &view.Failure{Class: "error", Message: "no"}, Code: 500,
	}
	text, err := json.Marshal(was)
	require.NoError(t, err)
	var is view.Span
	require.NoError(t, json.Unmarshal(text, &is))
	require.Equal(t, was, is)
	for _, wrong := range []string{`{"attributes":{"a":{}}}`, `{"attributes":{"a":null}}`, `{"attributes":{"a":[1]}}`, `{"id":"x"}`} {
		require.Error(t, json.Unmarshal([]byte(wrong), &is), wrong)
	}
}
