package flow

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// Warnings are likely mistakes in the definition, in the order of their places. They
// concern an output expression that reads into the output of an activity which may have
// none, because the job would fail after its work was done; a text that looks like an
// expression without its ${ }, because it is the same for every job; and the class of a
// worker, which changes nothing. The caller must not change them.
func (f *Flow) Warnings() Faults { return f.warnings }

// warnOutput checks an expression of the flow's output.
func (k *compiler) warnOutput(n *node, offset int, source string, place *trail, program *expr.Program) {
	code := expr.Code(source)
	asked := map[string]bool{} // activities whose code, error or skipped is read
	var read []string
	for _, r := range program.Refs() {
		switch {
		case r.Field == "code" || r.Field == "skipped" || r.Field == "error":
			asked[r.Name] = true
		case r.Field == "output" && reads(code, r.Name) >= 0:
			read = append(read, r.Name)
		}
	}
	for _, name := range read {
		v := k.byName[name]
		if v == nil || asked[name] || asks(code, name) {
			continue
		}
		at := offset + utf8.RuneCountInString(source[:reads(code, name)])
		switch {
		case v.fails:
			k.warned.within(n, at, place.String(), source, "%s may end with an error that a transition takes, and has no output then: test %s.code == 200 first", name, name)
		case !k.certain()[v]:
			k.warned.within(n, at, place.String(), source, "%s may not run, and its output is null then: test %s.skipped first", name, name)
		}
	}
}

// topicHTTP is the topic of the built-in handler http.
const topicHTTP = "http"

// warnClass warns about the class of a worker, on which the author may rely.
func (k *compiler) warnClass(v *vertex, path string) {
	n := v.def.classAt
	switch {
	case n == nil:
	case v.Topic == topicHTTP:
		k.warned.at(n, path, "the class has no effect: the handler http names its effect idempotent itself, and guarded where its input has verify; use that")
	default:
		k.warned.at(n, path, "the class has no effect: the handler decides; name it there, with workers.Class or at effects.Do")
	}
}

var (
	bracedTwice = regexp.MustCompile(`\{\{\s*(.*?)\s*(\}\}|$)`)
	bracedApart = regexp.MustCompile(`\$\s+\{\s*(.*?)\s*(\}|$)`)
	likePath    = regexp.MustCompile(`^([a-z][a-z0-9_]*)\.(output|code|error)\b(\.\w+|\[[^\]\s]+\])*`)
)

// warnText warns about a text without expressions that looks like one. A mapped value may
// be prose, or have braces for the handler, so there it must be an activity's result.
func (k *compiler) warnText(n *node, at *trail) {
	if strings.Contains(n.text, "${") {
		return
	}
	_, key, _ := strings.Cut(at.name, ".")
	_, key, _ = strings.Cut(key, ".")
	mapped := at.above != nil || forms[key] == nil // activities.NAME.KEY
	result := func(text string) bool {
		m := likePath.FindStringSubmatch(text)
		return m != nil && k.byName[m[1]] != nil && (!mapped || m[0] == text)
	}
	write := strings.TrimSpace(n.text)
	if result(write) {
		write = "${ " + write + " }"
	}
	for _, braced := range []*regexp.Regexp{bracedTwice, bracedApart} {
		if m := braced.FindStringSubmatch(write); m != nil && (!mapped || result(m[1])) {
			write = braced.ReplaceAllString(write, "$${ $1 }")
		}
	}
	if strings.Contains(write, "${") {
		k.warned.at(n, at.String(), "a text that is the same for every job, though it looks like an expression: write %s", write)
	}
}

var (
	readOutput  = regexp.MustCompile(`\b([a-z][a-z0-9_]*)\s*\.\s*output\s*[.\[]`)
	askedOutput = regexp.MustCompile(`\bhas\s*\(\s*([a-z][a-z0-9_]*)\s*\.\s*output\b`)
)

// reads is the offset at which code, see expr.Code, reads into an activity's output, or −1.
func reads(code, name string) int {
	for _, m := range readOutput.FindAllStringSubmatchIndex(code, -1) {
		if code[m[2]:m[3]] == name {
			return m[2]
		}
	}
	return -1
}

// asks says that code asks with has() for what is in an activity's output.
func asks(code, name string) bool {
	return slices.ContainsFunc(askedOutput.FindAllStringSubmatch(code, -1), func(m []string) bool {
		return m[1] == name
	})
}

// certain are the activities that run in every job that completes.
func (k *compiler) certain() map[*vertex]bool {
	if k.runs == nil {
		k.runs = map[*vertex]bool{}
		for _, v := range k.sorted { // parents come before their children
			k.runs[v] = !slices.ContainsFunc(v.in, func(e *edge) bool {
				return e.dropped || e.def.onError || e.def.when != nil || e.from.fails || !k.runs[e.from]
			})
		}
	}
	return k.runs
}

// because names the likely cause of an error in the flow's output: an activity that ended
// with an error, or did not run.
func (f *Flow) because(expression string, s Scope) string {
	for _, name := range f.outputNeeds {
		if expression != "" && reads(expr.Code(expression), name) < 0 {
			continue
		}
		r, _ := s.Result(name)
		switch {
		case r.Ran && r.Error != nil:
			return name + " ended with an error (" + clip(string(r.Error)) + "), so it has no output: test " + name + ".code == 200 first"
		case !r.Ran || r.Skipped:
			return name + " did not run, so its output is null: test " + name + ".skipped first"
		}
	}
	return ""
}

// clip shortens a text inside a message.
func clip(text string) string {
	characters := 0
	for i := range text {
		if characters++; characters > maxFaultText {
			return text[:i] + "…"
		}
	}
	return text
}
