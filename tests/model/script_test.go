package model

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// task is what a worker is to do: its input says it, so that a flow's text is
// its whole script. Handler and interpreter share it.
type task struct {
	act   string // salt of the output
	v     int
	n     int    // index under `each`
	code  int    // how it ends: 200, or the code of its error
	bad   []any  // indexes of elements that end with code 422 instead
	fail  int    // failed attempts before that
	how   string // of a failed attempt
	who   string // the await whose children fail at first
	fails int    // how many of them
	list  int    // size of the list in the output; 0 for none
}

// Topics of workers.
const (
	topicWork   = "work"        // pure
	topicEffect = "work.effect" // the body is an idempotent effect
	topicNobody = "nobody"      // no handler
)

// How an attempt fails.
const (
	howError = "error"
	howBusy  = "busy"
	howPanic = "panic"
	howHang  = "hang"
)

// failedCodes are what the last failed attempt ends with.
var failedCodes = map[string]int{howError: 500, howBusy: 503, howPanic: 500, howHang: 408}

func taskOf(input any) task {
	d := task{code: 200, how: howError}
	in, ok := input.(map[string]any)
	if !ok {
		d.v = input.(int)
	}
	for k, to := range map[string]*int{
		"v": &d.v, "n": &d.n, "code": &d.code, "fail": &d.fail, "fails": &d.fails, "list": &d.list,
	} {
		if n, ok := in[k].(int); ok {
			*to = n
		}
	}
	for k, to := range map[string]*string{"act": &d.act, "how": &d.how, "who": &d.who} {
		if s, ok := in[k].(string); ok {
			*to = s
		}
	}
	d.bad, _ = in["bad"].([]any)
	return d
}

// final is how the task ends once its attempts have not failed; turn counts the
// children of the await that it names.
func (d task) final(turn int) (code int, output any) {
	if d.who != "" && turn <= d.fails {
		return 409, nil
	}
	for _, n := range d.bad {
		if n == d.n {
			return 422, nil
		}
	}
	if d.code != 200 {
		return d.code, nil
	}
	out := map[string]any{"v": mix(d.act, d.v+d.n)}
	if d.list > 0 {
		list := make([]any, d.list)
		for i := range list {
			list[i] = (d.v + i) % 10
		}
		out["list"] = list
	}
	return 200, out
}

// mix is a small number that depends on everything.
func mix(salt string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(salt + strconv.Itoa(n)))
	return int(h.Sum32() % 10)
}

// rule says what happens to those who wait for a signal. It stands in the
// signal's key, <anything>/<rule>/<name>, so that the flow's text says it.
type rule struct {
	fed    bool // signals come from outside, as many as are waited for
	race   bool // and the timer may be faster
	passes int  // signals of code 202 before the ending one
	code   int  // of the ending one
}

var rules = map[string]rule{
	"ok":     {fed: true, code: 200},
	"bad":    {fed: true, code: 409},
	"two":    {fed: true, passes: 2, code: 200},
	"three":  {fed: true, passes: 3, code: 200},
	"onebad": {fed: true, passes: 1, code: 409},
	"only":   {code: 200}, // an activity sends it, nobody else
	"race":   {fed: true, race: true, code: 200},
	"never":  {},
}

// ruleOf reads a key.
func ruleOf(key string) (r rule, name string) {
	parts := strings.Split(key, "/")
	return rules[parts[len(parts)-2]], parts[len(parts)-1]
}

// topicOf is the topic of the signals of a key.
func topicOf(key string) string {
	parts := strings.Split(key, "/")
	return "topic." + parts[len(parts)-2]
}

// payloadOf is what the signals of a key carry; pass is 0 for the ending one,
// or the number among those before it.
func payloadOf(key string, pass int) any {
	r, name := ruleOf(key)
	if !r.fed {
		return map[string]any{"v": 1}
	}
	return map[string]any{"v": mix(name, pass)}
}
