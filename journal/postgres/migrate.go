package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/internal/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations are the steps of the schema, in their order. The version of a schema is the number
// of steps that were applied.
var migrations = readMigrations()

func readMigrations() []string {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		panic(fmt.Sprintf("postgres: embedded migrations: %v", err))
	}
	steps := make([]string, len(names))
	for i, name := range names {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			panic("postgres: migration " + name + " is not number " + strconv.Itoa(i+1))
		}
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			panic(fmt.Sprintf("postgres: embedded migration %s: %v", name, err))
		}
		steps[i] = string(text)
	}
	return steps
}

// Migrate brings the schema to this build's version, forward only, and then makes partitions as
// Extend does, each in one transaction. It needs the rights of the owner.
func (s *Store) Migrate(ctx context.Context) error {
	begin := "BEGIN;" + s.migrateLock() + "CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{s.schema}.Sanitize()
	err := s.call(ctx, "migrate", func(c *conn) error {
		return c.between(ctx, begin, func() error { return s.migrate(ctx, c) })
	})
	if forbidden(err) {
		err = fmt.Errorf("%w; a process whose login does not own the schema leaves it alone (Config.NoMigrate, QUIPU_NO_MIGRATE, --no-migrate)", err)
	}
	return err
}

func (s *Store) migrate(ctx context.Context, c *conn) error {
	version, err := s.version(ctx, c)
	if err != nil {
		return err
	}
	if version > len(migrations) {
		return s.wrongSchema(version)
	}
	var steps strings.Builder
	for _, step := range migrations[version:] {
		steps.WriteString(step)
		steps.WriteString(";\n")
	}
	fmt.Fprintf(&steps, "INSERT INTO space (name, version) VALUES ('%s', %d) ON CONFLICT (single) DO UPDATE SET version = excluded.version;",
		s.cfg.Space, len(migrations)) // the space's name is validated: it needs no escaping
	if err := c.exec(ctx, steps.String()); err != nil {
		return err
	}
	if err := c.firstKey(ctx); err != nil {
		return err
	}
	if err := c.extend(ctx, s.migrateLock()); err != nil {
		return err
	}
	_, err = s.version(ctx, c)
	return err
}

// migrateLock keeps two processes that start at once from migrating both. It is a lock that only who
// owns the tables can take (S8); before there are any, one of any login.
func (s *Store) migrateLock() string {
	return strings.ReplaceAll(`DO $$ BEGIN
		IF to_regclass('{schema}.partitions') IS NULL THEN
			PERFORM pg_advisory_xact_lock(hashtextextended('quipu migrate {schema}', 0));
		ELSE
			LOCK TABLE {schema}.partitions IN SHARE UPDATE EXCLUSIVE MODE;
		END IF;
	END $$;`, "{schema}", s.schema)
}

// exec runs SQL text of several statements, without parameters.
func (c *conn) exec(ctx context.Context, text string) error {
	_, err := c.pg.Exec(ctx, text).ReadAll()
	return err
}

// between runs do in a transaction that a text begins.
func (c *conn) between(ctx context.Context, begin string, do func() error) error {
	err := c.exec(ctx, begin)
	if err == nil {
		err = do()
	}
	if err == nil {
		err = c.exec(ctx, "COMMIT")
	}
	if err != nil {
		_ = c.exec(context.WithoutCancel(ctx), "ROLLBACK") // ends an open transaction
	}
	return err
}

// version returns the version of the schema, 0 if there is none.
func (s *Store) version(ctx context.Context, c *conn) (int, error) {
	results, err := c.pg.Exec(ctx, "SELECT to_regclass('space') IS NOT NULL").ReadAll()
	if err != nil {
		return 0, err
	}
	if string(results[0].Rows[0][0]) != "t" {
		return 0, nil
	}
	version, name := 0, ""
	err = c.query(ctx, "schema_version", func(v row) error {
		version, name = int(v.int(0)), v.text(1)
		s.where.seen(store.Mark{Space: v.guid(2), Epoch: v.int(3), Beat: v.int(4)})
		return nil
	})
	if pg := serverError(err); pg != nil && pg.Code == noColumn {
		err = fmt.Errorf("schema %s: %w: %w", s.schema, errNoSpaceTable, err)
	}
	if err == nil && name != "" && name != s.cfg.Space {
		err = fmt.Errorf("%w: schema %s holds space %q, not %q: spaces that differ in - and _ alone cannot share a database",
			store.ErrSchema, s.schema, name, s.cfg.Space)
	}
	return version, err
}

// checkSchema refuses a schema of another version. An older one passes if the caller is about to
// migrate.
func (s *Store) checkSchema(ctx context.Context, migrating bool) error {
	return s.look(ctx, "schema", func(c *conn) error {
		version, err := s.version(ctx, c)
		if err != nil || version == len(migrations) || migrating && version < len(migrations) {
			return err
		}
		if version == 0 {
			return s.noSpace(ctx, c)
		}
		return s.wrongSchema(version)
	})
}

// NoSpaceError says that the database has no such space, and which it has. It is a
// store.ErrSchema.
type NoSpaceError struct {
	Space string
	// Spaces are the spaces that the database has, in their order.
	Spaces []string
}

// TakenError says that something of another program has a name in the schema of the space that is
// needed there. It is a store.ErrSchema.
type TakenError struct{ text string }

// Error says what to do.
func (e *TakenError) Error() string { return e.text }

// Unwrap returns store.ErrSchema.
func (e *TakenError) Unwrap() error { return store.ErrSchema }

var (
	errTaken = &TakenError{"the schema of the space already has something of this name, of another program: " +
		"move it to another schema (ALTER … SET SCHEMA), or take another name for the space"}
	errNoSpaceTable = &TakenError{"its table space is not that of this build: if it is another program's, " +
		"move it to another schema (ALTER TABLE … SET SCHEMA), or take another name for the space"}
)

// maxSpacesNamed bounds the spaces that the text of a NoSpaceError names.
const maxSpacesNamed = 20

// Error names the spaces that there are, and what makes this one.
func (e *NoSpaceError) Error() string {
	there := "it has none"
	if n := len(e.Spaces); n > 0 {
		there = "it has " + strings.Join(e.Spaces[:min(n, maxSpacesNamed)], ", ")
		if n > maxSpacesNamed {
			there += fmt.Sprintf(" and %d more", n-maxSpacesNamed)
		}
	}
	return fmt.Sprintf("the database has no space %s: %s; `quipu migrate --space %s` makes it", e.Space, there, e.Space)
}

// Unwrap returns store.ErrSchema.
func (e *NoSpaceError) Unwrap() error { return store.ErrSchema }

// noSpace looks which spaces there are.
func (s *Store) noSpace(ctx context.Context, c *conn) error {
	e := &NoSpaceError{Space: s.cfg.Space}
	results, err := c.pg.Exec(ctx, spacesText).ReadAll()
	if err != nil {
		return err
	}
	for _, row := range results[0].Rows {
		if schema := string(row[0]); schema == s.schema {
			return fmt.Errorf("%w: this login may not use schema %s: grant it one of the roles that `quipu migrate --space %s --roles` makes",
				store.ErrSchema, s.schema, s.cfg.Space)
		}
		e.Spaces = append(e.Spaces, spaceOf(string(row[0])))
	}
	return e
}

// spacesText lists the schemas of spaces. It is no statement of sql/, since those are prepared in
// the schema of a space.
const spacesText = `SELECT n.nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
WHERE n.nspname LIKE 'quipu\_%' AND c.relname = 'space' AND c.relkind = 'r' ORDER BY n.nspname`

func (s *Store) wrongSchema(version int) error {
	if version > len(migrations) {
		return fmt.Errorf("%w: schema %s has version %d, this build knows %d: use a newer build",
			store.ErrSchema, s.schema, version, len(migrations))
	}
	return fmt.Errorf("%w: schema %s has version %d, this build needs %d: run `quipu migrate`",
		store.ErrSchema, s.schema, version, len(migrations))
}
