// Package trace holds the test that one job is one tree of spans (spec 5.4),
// with real servers, worker processes of which one is killed in an attempt, and
// a collector that takes what they export over OTLP.
package trace
