package soak

import (
	"flag"
	"os"
	"strconv"
)

// On says whether this is `make soak`: QUIPU_SOAK is set.
func On() bool { return os.Getenv("QUIPU_SOAK") != "" }

// Times returns few in `make test` and many in `make soak`.
func Times(few, many int) int {
	if On() {
		return many
	}
	return few
}

// Checks sets how often rapid tries each property of a test binary, unless its flag says so. TestMain
// calls it before the tests run.
func Checks(few, many int) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if set {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(Times(few, many))); err != nil {
		panic(err)
	}
}
