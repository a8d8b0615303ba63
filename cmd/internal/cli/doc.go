// Package cli is what the commands share: streams instead of the process's own,
// exit codes as errors, flags that may come from the environment, DIR/dev.json,
// and the reference that docs/cli.md holds.
//
// A main is Main(run); run builds a cobra command and gives it to Execute. A
// command's function returns an error made with Exit where the code matters;
// everything that cobra itself refuses is a usage error.
package cli
