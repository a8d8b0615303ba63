// Command worker is the worker process of the fault cells. Built with the tag
// faults it stands still at the point that its configuration names, until the
// harness answers.
package main
