package dev

import "syscall"

// dieWithParent has the kernel stop the child when this process is gone: SIGINT
// is Postgres's fast shutdown.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
