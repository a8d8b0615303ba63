// Command worker is a process of a space: an engine, handlers, or both (T8). It has the built-in
// handlers http, echo, sleep and fail, so that flows run without Go code. To run your own
// handlers, write a main with package quipu.
//
// `worker` connects to running servers. `worker dev` starts its own, an embedded NATS and a
// private Postgres, in a directory that survives restarts. docs/cli.md documents flags,
// environment and exit codes.
package main
