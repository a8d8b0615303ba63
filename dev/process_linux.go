package dev

import "syscall"

// dieWithParent makes the kernel stop the child when this process ends. SIGINT is Postgres's fast
// shutdown.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
