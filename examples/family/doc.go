// Package family is an example: a job that starts others, waits for them, and
// tries again when one fails. onboarding.yaml is the parent, README.md how to try
// it.
package family
