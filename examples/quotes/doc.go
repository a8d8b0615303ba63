// Package quotes is an example: several carriers are asked for a price at the same
// time. quotes.yaml waits for all of them, first.yaml for the first; tender.yaml
// asks as many as the job names, with the handler of this package. README.md says
// how to try them.
package quotes
