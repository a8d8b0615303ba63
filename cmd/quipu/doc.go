// Command quipu is for operators: it deploys flows, starts, signals and interrupts
// jobs, shows what became of them and what they wait for, exports and replays
// their journals, and decides on dead letters.
//
// It is a client: it takes no part in the work of the space. Every command reads
// ids from standard input where it is given `-`, and prints tables for people or,
// with -o json, one JSON object per line. docs/cli.md documents commands, flags,
// environment and exit codes.
package main
