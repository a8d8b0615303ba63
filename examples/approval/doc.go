// Package approval is an example: a request that somebody must approve, with reminders and a
// deadline. approval.yaml is the flow; README.md says how to try it.
package approval
