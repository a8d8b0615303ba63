package soak

import "os"

// On says whether this is `make soak`: QUIPU_SOAK is set.
func On() bool { return os.Getenv("QUIPU_SOAK") != "" }

// Times returns few in `make test` and many in `make soak`.
func Times(few, many int) int {
	if On() {
		return many
	}
	return few
}
