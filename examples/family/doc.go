// Package family is an example: a job that starts others, waits for them, and tries again if one
// fails. onboarding.yaml is the parent; README.md says how to try it.
package family
