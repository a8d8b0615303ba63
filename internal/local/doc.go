// Package local hands messages over within a process (W7). Its Bus decorates the bus
// between processes. A message for a lane or a topic that this process serves, and has
// room for, goes by memory. All other messages, and those that are handed back, go by the
// bus beneath.
//
// A request is taken before it is committed: Take reserves a slot of its topic, and the
// row is inserted with the holder that Take names, so that no other process gets the
// request while the holder's lease lasts. Send hands the message over once the row is
// committed. If the process dies the row sends the message again, as after any other loss
// (T2).
//
// A share of the slots is reserved for requests from the bus beneath, so that other
// processes are not idle beside a busy one. A bus that is a Yielder is told how many
// slots are in use.
package local
