// Package deploy holds what operators are given to the code (O5): docs/metrics.md, and in deploy/
// the dashboard, the alert rules, the scaler and the manifests. Every metric that a file names is
// an instrument of the code, with the labels that it names, every alert has its runbook, and every
// flag and variable is one of the command.
package deploy
