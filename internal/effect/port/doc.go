// Package port is where package effects meets the machine: the functions that handlers call find the
// run that they belong to in their context, and hand it the call. So package effects needs nothing
// of the machine, and shows nothing of it.
package port
