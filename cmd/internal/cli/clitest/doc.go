// Package clitest tests commands: it runs them with captured streams, and checks that docs/cli.md
// says what they say.
package clitest
