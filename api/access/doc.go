// Package access decides who may ask a process over HTTP, and for what (O11). New makes a Guard,
// and Guard.Wrap puts it before all handlers of a server: it finds out who asks, refuses writes
// that another site makes a browser send, bounds requests, and sets the security headers. A
// handler asks Of who it is, or stands behind Guard.Need.
//
// Where only this machine reaches the address, nobody is asked (Config.Local), but the Host of a
// request has to be a loopback one, so that no name server leads a browser here. Everywhere else a
// request has a token, or comes from a proxy that says who sent it.
package access
