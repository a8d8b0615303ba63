// Package serve runs an HTTP server on a loopback address until its context ends.
package serve
