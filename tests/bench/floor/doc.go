// Package floor writes the rows of one job step without any protocol, to measure what the
// database alone costs. The benchmark runs it beside the engine as the lower bound for its
// figures.
package floor
