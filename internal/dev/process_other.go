//go:build unix && !linux

package dev

import "syscall"

// dieWithParent cannot do that here: a killed parent leaves its children running. The next
// StartPostgres on a directory stops the server there first.
func dieWithParent(*syscall.SysProcAttr) {}
