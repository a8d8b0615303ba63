// Package api holds the tests of the root package: a user's program, against real servers, through
// what the package exports. What only the store can show is read by internal/below.
package api
