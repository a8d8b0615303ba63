//go:build unix && !linux

package dev

import "syscall"

// dieWithParent has no means here: a killed parent leaves its children running;
// the next StartPostgres on a directory stops the one there first.
func dieWithParent(*syscall.SysProcAttr) {}
