package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/internal/store"
)

// minServer is the oldest server version that the statements are tested on.
const minServer = 150000

// Preflight is the result of the checks at start (S7).
type Preflight struct {
	Server   string           // its version
	Login    string           // of this process: the session's user
	Facts    []string         // what was checked, one line each, for people
	Warnings []string         // what does not break the promise
	Accepted []store.Weakness // what would break it, and was accepted by its name
}

// Preflight checks the server settings that the promise rests on, in one round trip (S7). What
// would break it and is not in accept is a store.ErrPreflight, which names all of it.
func (s *Store) Preflight(ctx context.Context, accept []string) (*Preflight, error) {
	p := &Preflight{}
	var found []store.Weakness
	err := s.look(ctx, "preflight", func(c *conn) error {
		*p = Preflight{}
		return (&conn{pg: c.pg}).query(ctx, "preflight", func(v row) error { // not prepared: it is asked once
			p.Login = v.text(7)
			found = p.judge(&server{
				version: v.int(0), standby: v.bool(4), checksums: v.text(5), server: v.text(6),
				serverSettings: serverSettings{fsync: v.text(1), fullPages: v.text(2), commit: v.text(3)},
			})
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if p.Accepted, err = store.Judge(found, accept); err != nil {
		return p, fmt.Errorf("postgres: %w", err)
	}
	s.settings.pass(accept)
	for _, w := range p.Accepted {
		p.Warnings = append(p.Warnings, "accepted by an operator: "+w.Check+": "+w.What)
	}
	return p, nil
}

// server is what the preflight asks a server.
type server struct {
	serverSettings
	version   int64
	server    string // the version in words
	checksums string
	standby   bool
}

// judge records the settings, and returns what breaks the promise.
func (p *Preflight) judge(is *server) (found []store.Weakness) {
	p.Server = is.server
	must := func(ok bool, check, what, value, do string) {
		if !ok {
			found = append(found, store.Weakness{Check: check, Value: value, What: fmt.Sprintf("%s is %s: %s", what, value, do)})
		}
	}
	must(is.version >= minServer, store.CheckVersion, "server version", is.server, "use PostgreSQL 15 or newer")
	found = append(found, is.weak()...)
	must(!is.standby, store.CheckStandby, "role", role(is.standby), "connect to the primary")
	p.Facts = append(p.Facts, "server version = "+is.server, "fsync = "+is.fsync, "full_page_writes = "+is.fullPages,
		"synchronous_commit = "+is.commit, "role = "+role(is.standby), "data_checksums = "+is.checksums)
	if is.checksums != "on" {
		p.Warnings = append(p.Warnings, "data checksums are off: the database does not notice pages that its disk corrupted")
	}
	return found
}

func role(standby bool) string {
	if standby {
		return "standby"
	}
	return "primary"
}
