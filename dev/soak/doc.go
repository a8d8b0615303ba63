// Package soak says how often a test repeats what it repeats for luck: a few times
// in `make test`, which runs for every change, and many times in `make soak`.
package soak
