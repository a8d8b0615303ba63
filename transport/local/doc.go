// Package local hands messages over within a process (W7). Its Bus decorates the bus
// that goes between processes: a message for a lane or a topic that this process
// serves, and has room for, goes by memory; everything else, and whatever is handed
// back, goes by the bus beneath.
//
// A request is taken before it is committed: Take reserves a slot of its topic, and
// its row is inserted with the holder that Take names, so that nobody else is asked as
// long as that one's lease lasts. Send hands the message over once the row is
// committed. What is lost with the process is sent again by its row, as what a server
// loses is (T2).
//
// So that other processes are not idle beside a busy one, a share of the slots is left
// to what comes by the bus, and a bus that can is told how many are taken.
package local
