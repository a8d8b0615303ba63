package dev

import "syscall"

// dieWithParent makes the kernel stop the child when this process ends. SIGINT is Postgres's fast
// shutdown, and ends the commands of this module in order.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
