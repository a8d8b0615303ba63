package quipu

import (
	"fmt"

	"github.com/quipu-journal/quipu/journal/store"
)

// ErrLogin says that the database does not let this login in, or that the login has no right to
// what was asked (S8); the error says which, and what to do. It is an ErrUnavailable: nothing was
// done. But calling again does not help until somebody has changed that.
var ErrLogin = store.ErrLogin

// decides says whether this login decides and commits by itself, as that of an engine, an operator
// or the owner does: it may read the keys of the space. Those of clients and workers leave that to
// the engines (S8).
func (rt *Runtime) decides() bool { return rt.keys.Ring().Derives() }

// covers returns an ErrLogin about an act that nobody does for a login that does not decide.
func (rt *Runtime) covers(act string) error {
	if rt.decides() {
		return nil
	}
	return store.Login(fmt.Sprintf("%s needs the rights of an operator or an engine of the space %s, and this login has those of a client or a worker at most: "+
		"use another login, or give it the role (`quipu grant operator LOGIN`)", act, rt.cfg.Space))
}
