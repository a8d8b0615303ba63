// Package health decides what is wrong with a process and with a space. /readyz, `quipu why`,
// `quipu top` and the console print what it says, so that they say the same.
//
// A process knows its own troubles: Order puts them in the order in which one explains the next. It
// tells them to the others with each renewal of its session. Space puts together what all processes
// tell, and what the tables and queues show.
package health
