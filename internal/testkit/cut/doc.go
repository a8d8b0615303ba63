// Package cut stands between a client and a server and does to their
// connections what a network does (F11, F15): it stops one direction or both,
// resets, refuses, delays and cuts into small pieces, and heals, while the
// connections live.
//
//	p := cut.New(t, "127.0.0.1:5432")
//	connect(p.Addr())
//	p.Down() // the server hears the client, the client hears nothing
//	p.Heal()
//
// Delays and pieces are toxiproxy's; its proxy is not used, since that can
// neither reset a connection that lives nor stop one direction of it and go on.
package cut
