package inspect

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Differences compares two definitions of flows, place by place. The error is one of reading them.
func Differences(before, after []byte) ([]Difference, error) {
	var sides [2]any
	for i, text := range [][]byte{before, after} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&sides[i]); err != nil {
			return nil, err
		}
	}
	return compare("", sides[0], sides[1], nil), nil
}

// Difference is one place where two versions differ; nil stands for a side that has nothing
// there.
type Difference struct {
	Path   string `json:"path"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// compare compares two JSON values: objects member by member, all others as a whole.
func compare(path string, before, after any, found []Difference) []Difference {
	x, isObject := before.(map[string]any)
	y, areObjects := after.(map[string]any)
	if !isObject || !areObjects {
		if string(Spell(before)) != string(Spell(after)) {
			found = append(found, Difference{path, before, after})
		}
		return found
	}
	all := maps.Clone(x)
	maps.Copy(all, y)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		inner := key
		if path != "" {
			inner = path + "." + key
		}
		_, had := x[key]
		_, has := y[key]
		switch {
		case !had:
			found = append(found, Difference{Path: inner, After: y[key]})
		case !has:
			found = append(found, Difference{Path: inner, Before: x[key]})
		default:
			found = compare(inner, x[key], y[key], found)
		}
	}
	return found
}

// Spell is a value of a Difference as JSON.
func Spell(v any) []byte {
	text, _ := json.Marshal(v) // it was read from JSON, so it cannot fail
	return text
}
