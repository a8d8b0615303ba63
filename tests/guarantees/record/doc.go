// Record writes the counts of runs that are scripts: it reads the table that
// scripts/fuzz or scripts/mutants printed, and calls guarantees.Record.
//
//	record begin                                          prints what is checked out
//	record -commit C -seconds N fuzz <TABLE               writes fuzz.json
//	record -commit C -seconds N -limit SEEDS mutants <TABLE   writes mutants.json
package main
