package canonical

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// what Object reads in these tests.
type what struct {
	Name string
	N    int
	Tags []string
	At   *time.Time
	Any  json.RawMessage
}

func (w *what) members() map[string]any {
	return map[string]any{"name": &w.Name, "n": &w.N, "tags": &w.Tags, "at": &w.At, "any": &w.Any}
}

func TestObject(t *testing.T) {
	t.Parallel()
	var w what
	require.NoError(t, Object([]byte(` {"any": {"b": 1.0, "a": null}, "n":4e2,"\u006eame":"x","tags":["a","b"],"at":"2026-01-31T18:00:00Z"} `), w.members()))
	require.Equal(t, `{"a":null,"b":1}`, string(w.Any))
	require.Equal(t, "x", w.Name)
	require.Equal(t, 400, w.N)
	require.Equal(t, []string{"a", "b"}, w.Tags)
	require.Equal(t, 2026, w.At.Year())
	require.NoError(t, Object([]byte(`{"any":null}`), w.members()))
	require.Equal(t, "null", string(w.Any))
	require.NoError(t, Object([]byte(`{}`), w.members()))
}

// What has no one meaning is refused, and its place is named.
func TestObjectRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name":"a","name":"b"}`:      `$.name (byte 19): the member comes twice`,
		`{"name":"a","\u006eame":"b"}`: `$.name (byte 24): the member comes twice`,
		`{"Name":"a"}`:                 `$.Name (byte 8): there is no such member`,
		`{"n":1,"NAME":"a"}`:           `$.NAME (byte 14): there is no such member`,
		`{"name":null}`:                `$.name (byte 8): it cannot be a JSON null such as this`,
		`{"name":1}`:                   `$.name (byte 8): it cannot be a JSON number such as this`,
		`{"n":1.5}`:                    `$.n (byte 5): it cannot be a JSON number such as this`,
		`{"tags":[1]}`:                 `$.tags (byte 8): it cannot be a JSON array such as this`,
		`{"any":{"a":{"k":1,"k":2}}}`:  `$.any.a (byte 19): key "k" comes twice`,
		`{"any":"\u0000"}`:             `U+0000 is not allowed`,
		`{"name":"\u0000"}`:            `U+0000 is not allowed`,
		"{\"any\":\"\xff\"}":           `invalid UTF-8`,
		`{"any":"\ud800"}`:             `half a surrogate pair`,
		`{"any":1}{}`:                  `more text behind the value`,
		`{"any":1},`:                   `more text behind the value`,
		`{"any":1}` + "\x00":           `more text behind the value`,
		`{"any":`:                      `the text ends`,
		`[]`:                           `'[' where '{' should be`,
		``:                             `the text ends`,
		`{"any":` + strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1) + `}`: `nested deeper`,
	} {
		var w what
		err := Object([]byte(text), w.members())
		var place *Error
		require.True(t, errors.As(err, &place), text)
		require.Contains(t, err.Error(), want, text)
	}
}
