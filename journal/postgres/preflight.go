package postgres

import (
	"context"
	"fmt"
	"strings"
)

// minServer is the oldest server version that the statements are tested on.
const minServer = 150000

// Preflight is the result of the checks at start (4.4).
type Preflight struct {
	Server   string   // its version
	Facts    []string // what was checked, one line each, for people
	Warnings []string // what does not break the promise
}

// Preflight checks the server settings that the promise rests on (4.4). Its error names every
// setting that would break it. A schema of another version is store.ErrSchema.
func (s *Store) Preflight(ctx context.Context) (*Preflight, error) {
	p := &Preflight{}
	var faults []string
	err := s.query(ctx, "preflight", func() { *p, faults = Preflight{}, nil }, func(v row) error {
		faults = p.judge(&serverSettings{
			version: v.int(0), fsync: v.text(1), fullPages: v.text(2), commit: v.text(3), standby: v.bool(4), checksums: v.text(5), server: v.text(6),
		})
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

// serverSettings are these settings, as the server spells them.
type serverSettings struct {
	version   int64
	server    string // the version in words
	fsync     string
	fullPages string
	commit    string
	checksums string
	standby   bool
}

// judge records the settings, and returns the faults that break the promise.
func (p *Preflight) judge(is *serverSettings) (faults []string) {
	p.Server = is.server
	must := func(ok bool, what, value, do string) {
		p.Facts = append(p.Facts, what+" = "+value)
		if !ok {
			faults = append(faults, fmt.Sprintf("%s is %s: %s", what, value, do))
		}
	}
	must(is.version >= minServer, "server version", is.server, "use PostgreSQL 15 or newer")
	must(is.fsync == "on", "fsync", is.fsync, "switch it on, or a crash loses what was committed")
	must(is.fullPages == "on", "full_page_writes", is.fullPages, "switch it on, or a crash tears pages")
	must(durable(is.commit), "synchronous_commit", is.commit, "set it to on or stricter, or a crash loses what was acknowledged")
	must(!is.standby, "role", role(is.standby), "connect to the primary")
	p.Facts = append(p.Facts, "data_checksums = "+is.checksums)
	if is.checksums != "on" {
		p.Warnings = append(p.Warnings, "data checksums are off: the database does not notice pages that its disk corrupted")
	}
	return faults
}

// durable says whether a commit is on disk before it is acknowledged.
func durable(setting string) bool {
	return setting == "on" || setting == "remote_write" || setting == "remote_apply"
}

func role(standby bool) string {
	if standby {
		return "standby"
	}
	return "primary"
}
