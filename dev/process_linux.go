package dev

import "syscall"

// dieWithParent has the kernel stop the child when this process is gone: SIGINT
// is Postgres's fast shutdown, and an end in order for the commands of this module.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
