// Command worker is a process of a space: engine, handlers, or both (T8). It has
// the built-in handlers http, echo, sleep and fail, so that flows run without
// any Go; own handlers are a main of one's own over package quipu.
//
// `worker` connects to servers that are there; `worker dev` brings its own, an
// embedded NATS and a private Postgres, in a directory that survives restarts.
// docs/cli.md documents flags, environment and exit codes.
package main
