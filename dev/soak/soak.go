package soak

import "os"

// On says that this is a run of `make soak`: QUIPU_SOAK is set.
func On() bool { return os.Getenv("QUIPU_SOAK") != "" }

// Times is few in `make test` and many in `make soak`.
func Times(few, many int) int {
	if On() {
		return many
	}
	return few
}
