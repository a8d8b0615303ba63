package postgres

import (
	"context"
	"fmt"
	"strings"
)

// minServer is the oldest server version that the statements are tested on.
const minServer = 150000

// Preflight is what the database says of itself at start (4.4).
type Preflight struct {
	Server   string   // its version
	Facts    []string // what was checked, one line each, to be printed
	Warnings []string // what does not break the promise
}

// Preflight checks the settings on which the promise rests, and refuses what
// would break it with an error that names every fault (4.4). A schema of
// another version is store.ErrSchema.
func (s *Store) Preflight(ctx context.Context) (*Preflight, error) {
	p := &Preflight{}
	var faults []string
	err := s.query(ctx, "preflight", func() { *p, faults = Preflight{}, nil }, func(v row) error {
		p.Server = v.text(6)
		must := func(ok bool, what, is, do string) {
			p.Facts = append(p.Facts, what+" = "+is)
			if !ok {
				faults = append(faults, fmt.Sprintf("%s is %s: %s", what, is, do))
			}
		}
		must(v.int(0) >= minServer, "server version", p.Server, "use PostgreSQL 15 or newer")
		must(v.text(1) == "on", "fsync", v.text(1), "switch it on, or a crash loses what was committed")
		must(v.text(2) == "on", "full_page_writes", v.text(2), "switch it on, or a crash tears pages")
		must(durable(v.text(3)), "synchronous_commit", v.text(3), "set it to on or stricter, or a crash loses what was acknowledged")
		must(!v.bool(4), "role", role(v.bool(4)), "connect to the primary")
		p.Facts = append(p.Facts, "data_checksums = "+v.text(5))
		if v.text(5) != "on" {
			p.Warnings = append(p.Warnings, "data checksums are off: the database does not notice pages that its disk corrupted")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return p, fmt.Errorf("postgres: preflight: %s", strings.Join(faults, "; "))
	}
	if err := s.checkSchema(ctx, false); err != nil {
		return p, err
	}
	p.Facts = append(p.Facts, fmt.Sprintf("schema %s = version %d", s.schema, len(migrations)))
	return p, nil
}

// durable reports whether a commit is on disk before it is acknowledged.
func durable(setting string) bool {
	return setting == "on" || setting == "remote_write" || setting == "remote_apply"
}

func role(standby bool) string {
	if standby {
		return "standby"
	}
	return "primary"
}
