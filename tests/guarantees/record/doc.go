// Record writes the counts of a run that is a script: it reads the table that
// scripts/fuzz printed, and calls guarantees.Record.
//
//	record begin                              prints what is checked out
//	record -commit C -seconds N fuzz <TABLE   writes fuzz.json
package main
