// Package quotes is an example: it asks several carriers for a price at once. quotes.yaml waits
// for all of them, first.yaml for the first; tender.yaml asks as many as the job names, with the
// handler of this package. README.md says how to try them.
package quotes
