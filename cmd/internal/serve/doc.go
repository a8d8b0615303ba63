// Package serve runs the HTTP server of a space, with the console and the API behind one guard,
// until its context ends.
package serve
