package inspect_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/view"
)

// O11: of a job in which every value and every error is filled, nothing that is a payload is left, and
// the job itself does not change.
func TestO11HideLeavesNoPayload(t *testing.T) {
	t.Parallel()
	var job view.Job
	fill(reflect.ValueOf(&job).Elem(), 0)
	before, err := json.Marshal(&job)
	require.NoError(t, err)
	require.GreaterOrEqual(t, strings.Count(string(before), "secret"), 17)
	hidden := inspect.Hide(&job)
	text, err := json.Marshal(hidden)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	require.Contains(t, string(text), "a message")
	require.True(t, hidden.Hidden)
	after, err := json.Marshal(&job)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

// fill puts a secret wherever the model of a job has a payload, and one item into each list.
func fill(v reflect.Value, depth int) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`"secret"`))
	case v.Type() == reflect.TypeFor[view.Failure]():
		v.Set(reflect.ValueOf(view.Failure{Class: "c", Message: "a message", Data: json.RawMessage(`"secret"`), Stack: "secret"}))
	case depth > 8:
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}
