// Package play is what the processes of a cell play: the flow of its jobs, the
// handlers, and the words in which the harness and a worker process talk.
package play
