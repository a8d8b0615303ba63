// Package polling is an example: a loop that asks a service until it has an answer. polling.yaml
// is the flow; README.md says how to try it.
package polling
