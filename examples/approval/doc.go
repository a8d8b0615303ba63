// Package approval is an example: a request that somebody must approve, with
// reminders and an end. approval.yaml is the flow, README.md how to try it.
package approval
