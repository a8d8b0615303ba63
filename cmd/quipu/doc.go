// Command quipu is for operators. It deploys flows, starts, signals and interrupts jobs, shows
// their state and what they wait for, exports and replays their journals, and decides on dead
// letters.
//
// It is a client and does no work for the space. Given `-`, a command reads ids from standard
// input. It prints tables for people, or with -o json one JSON object per line. docs/cli.md
// documents commands, flags, environment and exit codes.
package main
