// Package soak says how often a test repeats a case that depends on luck: a few times in `make
// test`, which runs for every change, and many times in `make soak`.
package soak
