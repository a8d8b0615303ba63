//go:build unix && !linux

package main

import "syscall"

// dieWithParent has no means here: a demo that is killed leaves its processes.
func dieWithParent(*syscall.SysProcAttr) {}
