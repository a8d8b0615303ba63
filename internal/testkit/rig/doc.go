// Package rig has what the packages of tests with real processes share: a process that a
// test starts, and a service outside that the handlers of such processes call.
package rig
