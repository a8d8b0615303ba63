package main

import "syscall"

// dieWithParent has the kernel end the process when the demo is gone.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
