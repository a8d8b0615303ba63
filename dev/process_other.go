//go:build unix && !linux

package dev

import "syscall"

// dieWithParent cannot do that here: a killed parent leaves its Postgres running, and the next
// StartPostgres on the directory stops that first.
func dieWithParent(*syscall.SysProcAttr) {}
