// Package nightly is an example: a job that the clock starts. nightly.yaml is the flow; README.md
// says how to try it.
package nightly
