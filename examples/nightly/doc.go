// Package nightly is an example: a job that the clock starts. nightly.yaml is the
// flow, README.md how to try it.
package nightly
