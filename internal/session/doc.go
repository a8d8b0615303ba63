// Package session keeps the session of a process. The session tells other processes that
// this one lives; soon after it ends they take over what the process held (W8).
package session
