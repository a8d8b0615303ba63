// Package examples holds flows to try and to copy, each in a directory of its own
// with a README.md, whose commands the test of this package runs.
package examples
