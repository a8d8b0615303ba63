// Package ordertest is one order that is packed, reviewed and shipped as a child of its own, for
// the tests of what is told of a job: its history and its trace. Play plays it in a world of
// quiputest and holds what is told to a golden file.
package ordertest
