// Package cli is what the commands share: streams instead of the process's own, exit codes as
// errors, flags from the environment, DIR/dev.json, and the reference for docs/cli.md.
//
// A main calls Main(run); run builds a cobra command and passes it to Execute. A command's
// function makes its error with Exit if the exit code matters. Errors of cobra itself are usage
// errors.
package cli
