// Package floor writes the rows that one step of a job writes, without any
// protocol: what the database alone costs. The benchmark runs it beside the
// engine, in one run, as the floor under its figures.
package floor
