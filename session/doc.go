// Package session keeps the session of a process: by it the others know that the
// process lives, and what it holds is free soon after it does not (W8).
package session
