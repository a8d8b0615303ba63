// Package clitest tests commands: it runs them with captured streams, and holds
// docs/cli.md to what they say of themselves.
package clitest
