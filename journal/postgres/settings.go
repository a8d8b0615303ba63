package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
)

// serverSettings are those that the promise rests on (S7), as a connection has them and the server
// spells them.
type serverSettings struct {
	fsync, fullPages, commit string
	readOnly                 bool
	// stored are the settings that ALTER ROLE and ALTER DATABASE keep for the connections of this
	// login. An open connection does not get them; where they change, a new one is looked at.
	stored string
}

// settingsOf reads them from columns 2 to 6 of connection_settings.
func settingsOf(v row) serverSettings {
	return serverSettings{
		fsync: v.text(2), fullPages: v.text(3), commit: v.text(4), readOnly: v.text(5) == "on", stored: v.text(6),
	}
}

// weak are those that break the promise.
func (is *serverSettings) weak() (found []store.Weakness) {
	must := func(ok bool, check, name, value, do string) {
		if !ok {
			found = append(found, store.Weakness{Check: check, Value: value, What: fmt.Sprintf("%s is %s: %s", name, value, do)})
		}
	}
	must(is.fsync == "on", store.CheckFsync, "fsync", is.fsync, "switch it on, or a crash loses what was committed")
	must(is.fullPages == "on", store.CheckFullPages, "full_page_writes", is.fullPages, "switch it on, or a crash tears pages")
	must(durable(is.commit), store.CheckCommit, "synchronous_commit", is.commit, "set it to on or stricter, or a crash loses what was acknowledged")
	return found
}

// durable says whether a commit is on disk before it is acknowledged.
func durable(setting string) bool {
	return setting == "on" || setting == "remote_write" || setting == "remote_apply"
}

// brokenError says that a setting that was checked at the start does not hold any more (S7).
type brokenError struct{ why error }

// Error says which setting it is, and what to do.
func (e *brokenError) Error() string {
	return "a setting of the database changed while the process ran, and nothing is written there until it holds again: " + e.why.Error()
}

// Is makes it an ErrPreflight and an ErrUnavailable: it is tried again.
func (e *brokenError) Is(target error) bool {
	return target == store.ErrPreflight || target == store.ErrUnavailable
}

// promised is what the connections of a Store found of the settings. Its readers wait for nothing.
type promised struct {
	mu       sync.Mutex
	checked  bool     // the preflight has passed; before, Preflight itself compares
	accepted []string // checks that an operator accepted
	stored   string
	broken   *store.Trouble
	why      error // of broken
	readOnly *store.Trouble
}

// Kinds of the troubles of a database.
const (
	// TroubleSettings is a setting that breaks the promise since the process has started.
	TroubleSettings = "settings"
	// TroubleReadOnly is a database that takes no writes from new connections.
	TroubleReadOnly = "read-only"
)

// pass notes that the preflight has passed with what was accepted.
func (s *promised) pass(accepted []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked, s.accepted = true, accepted
}

// note compares what a connection found. fresh: the connection is new, so that what it found holds
// for all that are made after it. The error is a brokenError; changed says that the login's stored
// settings are others than the last new connection had.
func (s *promised) note(is serverSettings, fresh bool) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.checked {
		s.stored = is.stored
		return false, nil
	}
	if _, weak := store.Judge(is.weak(), s.accepted); weak != nil {
		err = &brokenError{weak}
		s.begin(&s.broken, TroubleSettings, err.Error())
		s.why = err
	} else if fresh {
		s.broken, s.why = nil, nil
	}
	if is.readOnly {
		s.begin(&s.readOnly, TroubleReadOnly, "the database takes no writes from this login: default_transaction_read_only is on; switch it off for the login, "+
			"the database and the server, or nothing goes on")
	} else if fresh {
		s.readOnly = nil
	}
	changed = is.stored != s.stored
	if fresh {
		s.stored, changed = is.stored, false
	}
	return changed || s.broken != nil || s.readOnly != nil, err
}

// begin notes a trouble, or what it says now.
func (s *promised) begin(t **store.Trouble, kind, text string) {
	since := collation.Micros(time.Now().UnixMicro())
	if *t != nil {
		since = (*t).Since
	}
	*t = &store.Trouble{Kind: kind, Name: "database", Text: text, Since: since, Stops: true}
}

// refused says that a setting does not hold.
func (s *promised) refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// Troubles are what keeps this process from writing to the database, as far as its connections have
// seen.
func (s *Store) Troubles() (all []store.Trouble) {
	s.settings.mu.Lock()
	defer s.settings.mu.Unlock()
	for _, t := range []*store.Trouble{s.settings.broken, s.settings.readOnly} {
		if t != nil {
			all = append(all, *t)
		}
	}
	return all
}

// refused says that nothing may be written: the database is another one (S13), or a setting that the
// promise rests on does not hold any more (S7). What is there is still read, by open connections.
func (s *Store) refused() error {
	if err := s.where.refused(); err != nil {
		return err
	}
	if err := s.settings.refused(); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	return nil
}

// resettle compares the settings of an open connection, and where those of new ones may be others, or
// keep this process from writing, those of a new one.
func (s *Store) resettle(ctx context.Context, c *conn) error {
	v, err := greet(ctx, c.pg, "connection_settings", pTexts(nil), pTexts(nil))
	if err != nil {
		return err
	}
	again, err := s.settings.note(settingsOf(v), false)
	if again || err != nil {
		return errors.Join(err, s.onOwnConnection(ctx, func(*conn) error { return nil }))
	}
	return nil
}
