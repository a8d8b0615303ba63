//go:build race

package faults

var race = []string{"-race"}
