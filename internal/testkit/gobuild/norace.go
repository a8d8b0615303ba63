//go:build !race

package gobuild

var race []string
