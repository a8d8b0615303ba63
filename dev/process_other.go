//go:build unix && !linux

package dev

import "syscall"

// dieWithParent has no means here: a killed parent leaves its Postgres running,
// and the next StartPostgres on the directory stops it first.
func dieWithParent(*syscall.SysProcAttr) {}
