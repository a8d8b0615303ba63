package replay_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
)

// free are the parts of an entry that an export alone cannot prove, with the reason. Each
// change of any other part of any entry of the fixtures is found.
var free = map[string]string{
	".Time+1":                 "a clock's",
	".Writer=~":               "a run's, of an effect",
	".Parent.Space=~":         "another job's",
	".Parent.Depth+1":         "another job's",
	".Close.Code+1":           "an interrupt's own",
	".Close.Error.Message=~":  "an interrupt's own",
	".Dispatched[].At+1":      "a policy's",
	".Dispatched[].Topic=~":   "the flow's",
	".Dispatched[].Job^1":     "a mailbox, by a key that is not told",
	".Dispatched[].Input^1":   "a sum of what only its row holds, while that stands",
	".Dispatched[].Input=0":   "a sum of what only its row holds, while that stands",
	".Dispatched-drop":        "a signal, a bound, a timer: what nothing refers to",
	".Updated[].NextAt+1":     "a policy's",
	".Updated-drop":           "held elements, past their bound, are not released; a function past its bound does not sleep",
	".Cancelled-drop":         "a function's wait, whose signal may be on its way",
	".Bound.Head.Hash^1":      "computed anew with all hashes",
	".Bound.Head.Hash=0":      "computed anew with all hashes",
	".Operator.Who=~":         "a person's",
	".Operator.Reason=~":      "a person's",
	".Effect.Error.Message=~": "a person's",
	".Effect.Fence+1":         "a worker's",
	".Effect.Late!":           "of a holder that was taken over",
	".Effect.Key^1":           "of a compensation that was not run: told here only",
	".Effect.Turn+1":          "of a start, in another turn that the request had",
	".Effect.Key=0":           "of a compensation that was not run: told here only",
	".Effect.Name=~":          "of a compensation that was not run: told here only",
	".Effect.N+1":             "of a compensation that was not run: told here only",
	".Effect.Position=~":      "of a compensation that was not run: told here only",

	".Response.Pauses[].Flow=~":  "an order's",
	".Response.Pauses[].For+1":   "of what stands already, and has its time",
	".Response.Pauses[].Topic=~": "of what stands already, and has its topic",
	".Response.Pauses[].Key=~":   "of what stands already, and has its key",
	".Response.Code+1":           "a worker's, a sender's, a child's",
	".Response.RetryAfter+1":     "a worker's",
	".Response.Began+1":          "a worker's clock",
	".Response.Ran+1":            "a worker's clock",
	".Response.Undone!":          "a worker's, of a function that registered no compensations",
	".Response.Error=nil":        "a worker's",
	".Response.Error.Class=~":    "a worker's",
	".Response.Error.Message=~":  "a worker's",
	".Response.Signal^1":         "a signal's, that is told here only",
	".Waits-drop":                "a wait that nothing refers to",
}

// TestEveryFactIsHeld changes every part of every entry of the fixtures, one at a time, with
// all hashes computed anew. Only the parts in free may change unnoticed.
func TestEveryFactIsHeld(t *testing.T) {
	t.Parallel()
	shapes := make(map[string]int)
	survived, unheld := make(map[string]bool), make(map[string]string)
	for _, name := range strings.Fields(`
		twice bent listed raced slept ticked awaited child joined halted stopped retried stepped failing
		suspended rested signalled timedOut invoiced moved running crossed steps refused failed undone doubted
		folded met`) {
		j := made(name)
		for at, e := range j.Entries() {
			get := func(e *journal.Entry) reflect.Value { return reflect.ValueOf(e).Elem() }
			if shapes[shape(e)]++; shapes[shape(e)] > maxAlike {
				continue
			}
			for _, m := range changes(get(e), "", get) {
				forged := j.Lie(func(entries []*journal.Entry) []*journal.Entry {
					m.do(entries[at])
					return entries
				})
				switch _, known := free[m.path]; {
				case forged.Verify(false).Violated():
				case known:
					survived[m.path] = true
				case slices.EqualFunc(forged.Records, j.Records, sameRecord): // it is not in the entry
				default:
					unheld[m.path] = fmt.Sprintf("%s, entry %d", name, at+1)
				}
			}
		}
	}
	require.Empty(t, unheld)
	require.ElementsMatch(t, slices.Collect(maps.Keys(free)), slices.Collect(maps.Keys(survived)), "free is not as free any more")
}

func sameRecord(a, b journal.Record) bool {
	return a.Chain == b.Chain && a.Seq == b.Seq && a.Hash == b.Hash
}

// maxAlike bounds the entries of one shape that are changed.
const maxAlike = 3

// shape names the parts that an entry contains, whatever their values.
func shape(e *journal.Entry) string {
	text := fmt.Sprint(e.Kind, e.Marks)
	v := reflect.ValueOf(e).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			text += v.Type().Field(i).Name
		}
	}
	return text
}

// TestEveryEntryIsHeld leaves out, repeats and swaps entries, with all hashes computed anew.
// The last entries may always be missing from a journal without its head.
func TestEveryEntryIsHeld(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields(`
		twice listed ticked awaited joined stepped folded met moved running steps invoiced crossed`) {
		j := made(name)
		for at := range j.Records[:len(j.Records)-1] {
			for how, change := range map[string]func(entries []*journal.Entry) []*journal.Entry{
				"left out": func(entries []*journal.Entry) []*journal.Entry { return slices.Delete(entries, at, at+1) },
				"repeated": func(entries []*journal.Entry) []*journal.Entry {
					again := *entries[at]
					return slices.Insert(entries, at, &again)
				},
				"moved to the end": func(entries []*journal.Entry) []*journal.Entry {
					return append(slices.Delete(slices.Clone(entries), at, at+1), entries[at])
				},
			} {
				forged := j.Lie(func(entries []*journal.Entry) []*journal.Entry {
					return replaytest.Renumber(change(entries))
				})
				require.True(t, forged.Verify(false).Violated(), "%s, entry %d %s", name, at+1, how)
			}
		}
	}
}

// change is one change of an entry, at a path in it.
type change struct {
	path string
	do   func(e *journal.Entry)
}

// changes lists the changes of the value that get finds, and of all below it.
func changes(v reflect.Value, path string, get func(e *journal.Entry) reflect.Value) []change {
	zero := func(e *journal.Entry) { get(e).SetZero() }
	below := func(name string, v reflect.Value, step func(reflect.Value) reflect.Value) []change {
		return changes(v, path+name, func(e *journal.Entry) reflect.Value { return step(get(e)) })
	}
	var out []change
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out = append(below("", v.Elem(), reflect.Value.Elem), change{path + "=nil", zero})
		}
	case reflect.Struct:
		for i := range v.NumField() {
			step := func(v reflect.Value) reflect.Value { return v.Field(i) }
			out = append(out, below("."+v.Type().Field(i).Name, v.Field(i), step)...)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // payloads belong to the user
			return nil
		}
		for i := range v.Len() {
			out = append(out, below("[]", v.Index(i), func(v reflect.Value) reflect.Value { return v.Index(i) })...)
			out = append(out, change{path + "-drop", func(e *journal.Entry) {
				v := get(e)
				v.Set(reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+1, v.Len())))
			}}, change{path + "-twice", func(e *journal.Entry) {
				v := get(e)
				v.Set(reflect.Append(v, v.Index(i)))
			}})
		}
	case reflect.Array:
		if !v.IsZero() {
			out = append(out, change{path + "=0", zero}, change{path + "^1", func(e *journal.Entry) {
				b := get(e).Index(3)
				b.SetUint(b.Uint() ^ 1)
			}})
		}
	case reflect.Int, reflect.Int64:
		out = append(out, change{path + "+1", func(e *journal.Entry) { v := get(e); v.SetInt(v.Int() + 1) }})
	case reflect.Bool:
		out = append(out, change{path + "!", func(e *journal.Entry) { v := get(e); v.SetBool(!v.Bool()) }})
	case reflect.String:
		if v.String() != "" {
			out = append(out, change{path + "=~", func(e *journal.Entry) { get(e).SetString("~") }})
		}
	}
	return out
}
