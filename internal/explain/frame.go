package explain

import (
	"regexp"
	"slices"
	"strings"
)

// framePlace is the line of a stack with a file and a line, behind that of the function.
var framePlace = regexp.MustCompile(`^\t(.+:\d+)(?: \+0x[0-9a-f]+)?$`)

// Frame is where an error with the stack came from, as file:line: the first frame outside
// Go's own packages and Quipu's, below the panic if there was one. "" if the stack names
// none, or is not one of Go.
func Frame(stack string) string {
	lines := strings.Split(stack, "\n")
	start, library := 0, ""
	for i, line := range lines[:len(lines)-1] {
		if strings.HasPrefix(line, "panic(") { // the last one is the first that was thrown
			start = i
			library, _, _ = strings.Cut(lines[i+1], "runtime/panic.go:")
		}
	}
	library = strings.TrimPrefix(library, "\t") // "" if the build trimmed it
	for i := start; i+1 < len(lines); i++ {
		if line := lines[i]; strings.HasPrefix(line, "created by ") {
			return ""
		} else if found := framePlace.FindStringSubmatch(lines[i+1]); found != nil && !inRuntime(line) &&
			!(library != "" && strings.HasPrefix(found[1], library)) {
			return found[1]
		}
	}
	return ""
}

// runtimes begin the names of functions that are not a user's.
var runtimes = []string{
	"panic(", "runtime.", "runtime/", "reflect.", module + ".", module + "/durable.", module + "/effects.", module + "/engine.", module + "/workers.",
}

const module = "github.com/quipu-journal/quipu"

func inRuntime(function string) bool {
	return slices.ContainsFunc(runtimes, func(prefix string) bool { return strings.HasPrefix(function, prefix) })
}
