// Package gobuild builds the programs that tests run. It uses the flags of the test itself, so
// that with the race detector the programs look for races, too, and shared packages are compiled
// once. Only the first of several test binaries links a program that they all run.
package gobuild
