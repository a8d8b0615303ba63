package attacks

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// grantees are the columns of the table of all rights in docs/security.md.
var grantees = []string{"client", "worker", "retention", "verifier", "operator", "engine"}

// granted says for each object of the space what each login may do with it. $1 logins, $2 schema. Partitions are left
// out, since nobody has a right to one.
const granted = `
WITH logins AS (SELECT * FROM unnest($1::text[]) WITH ORDINALITY AS l (login, place)),
tables AS (
	SELECT c.oid, c.relname, CASE c.relkind WHEN 'S' THEN 1 ELSE 0 END AS kind FROM pg_class c
	WHERE c.relnamespace = $2::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND NOT c.relispartition
), rights AS (
	SELECT t.kind, t.relname AS name, l.place, p.place AS nth, p.says,
		CASE WHEN t.kind = 1 THEN has_sequence_privilege(l.login, t.oid, p.priv) ELSE has_table_privilege(l.login, t.oid, p.priv) END AS whole,
		CASE WHEN t.kind = 0 AND p.priv IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') THEN (
			SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute a
			WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped AND has_column_privilege(l.login, t.oid, a.attnum, p.priv)) END AS columns
	FROM tables t CROSS JOIN logins l CROSS JOIN LATERAL unnest(
		CASE t.kind WHEN 1 THEN '{SELECT,USAGE,UPDATE}'::text[] ELSE '{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}' END,
		CASE t.kind WHEN 1 THEN '{read,use,set}'::text[] ELSE '{read,insert,update,delete,truncate,references,trigger}' END
	) WITH ORDINALITY AS p (priv, says, place)
	UNION ALL
	SELECT 2, p.proname || '()', l.place, 1, 'run', has_function_privilege(l.login, p.oid, 'EXECUTE'), NULL
	FROM pg_proc p CROSS JOIN logins l WHERE p.pronamespace = $2::regnamespace
	UNION ALL
	SELECT 3, 'schema', l.place, v.place, v.says, has_schema_privilege(l.login, $2, v.priv), NULL
	FROM logins l CROSS JOIN unnest('{USAGE,CREATE}'::text[], '{use,create}'::text[]) WITH ORDINALITY AS v (priv, says, place)
	UNION ALL
	SELECT 4, 'types', l.place, 1, 'use', bool_or(has_type_privilege(l.login, t.oid, 'USAGE')), NULL
	FROM pg_type t CROSS JOIN logins l WHERE t.typnamespace = $2::regnamespace GROUP BY l.place
)
SELECT name, array_agg(cell ORDER BY place) FROM (
	SELECT kind, name, place, coalesce(string_agg(
		CASE WHEN whole THEN says WHEN columns IS NOT NULL THEN says || ' (' || columns || ')' END, '; ' ORDER BY nth), '–') AS cell
	FROM rights GROUP BY kind, name, place
) AS x GROUP BY kind, name ORDER BY kind, name COLLATE "C"`

// granted returns the rights of logins as lines of the table.
func (g *target) granted(admin *pgx.Conn, logins ...string) (lines []string) {
	g.t.Helper()
	rows, err := admin.Query(g.t.Context(), granted, logins, "quipu_shop")
	require.NoError(g.t, err)
	var name string
	var cells []string
	_, err = pgx.ForEachRow(rows, []any{&name, &cells}, func() error {
		lines = append(lines, "| `"+name+"` | "+strings.Join(cells, " | ")+" |")
		return nil
	})
	require.NoError(g.t, err)
	return lines
}

// nameOf is the name of a login.
func nameOf(t *testing.T, dsn string) string {
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	return u.User.Username()
}

// section is a part of docs/security.md, up to the next heading of its level or above.
func section(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/security.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "\n### "+heading+"\n")
	require.True(t, found, heading)
	rest, _, _ = strings.Cut(rest, "\n## ")
	rest, _, _ = strings.Cut(rest, "\n### ")
	return rest
}

// Every right that the database gives to a login of a role stands in the table of docs/security.md, and no other
// one: a new table, column, sequence or function has a line or a word there. Any other login has none.
func TestTheRightsOfEachRole_S8(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	admin := g.admin()
	g.roles()
	var logins []string
	for _, role := range grantees {
		logins = append(logins, nameOf(t, g.login(admin, role)))
	}
	var told []string
	for line := range strings.Lines(section(t, "All rights")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| `") {
			told = append(told, line)
		}
	}
	given := g.granted(admin, logins...)
	require.Greater(t, len(given), 30)
	require.Equal(t, given, told, "the table of docs/security.md is to be\n\n%s\n", strings.Join(given, "\n"))

	stranger := nameOf(t, (&crowd{target: g, admin: admin}).stranger())
	for _, line := range g.granted(admin, stranger) {
		require.True(t, strings.HasSuffix(line, "` | – |"), line)
	}
}

// Nobody has a right but through the roles of the space, none can be passed on, and none is given
// to what is made later; partitions are reached through their tables alone. A function that reads
// tables for others names them by itself, not by a search path.
func TestNoOtherRights_S8(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	admin := g.admin()
	g.roles()
	const acls = `
SELECT 'table' AS kind, c.relname::text AS name, c.relowner AS owner, coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, c.relowner)) AS acl
FROM pg_class c WHERE c.relnamespace = 'quipu_shop'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
UNION ALL SELECT 'column', c.relname || '.' || a.attname, c.relowner, a.attacl
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'quipu_shop'::regnamespace AND a.attacl IS NOT NULL
UNION ALL SELECT 'function', proname, proowner, coalesce(proacl, acldefault('f', proowner)) FROM pg_proc WHERE pronamespace = 'quipu_shop'::regnamespace
UNION ALL SELECT 'type', typname, typowner, coalesce(typacl, acldefault('T', typowner)) FROM pg_type WHERE typnamespace = 'quipu_shop'::regnamespace AND typelem = 0
UNION ALL SELECT 'schema', nspname, nspowner, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace WHERE nspname = 'quipu_shop'`
	none := func(why, query string) {
		t.Helper()
		rows, err := admin.Query(t.Context(), query)
		require.NoError(t, err)
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err, query)
		require.Empty(t, found, why)
	}
	everybody := "quipu_shop_" + strings.Join(slices.Concat(grantees, []string{"owner"}), ",quipu_shop_")
	none("a right of another login, or of all", `SELECT concat_ws(' ', kind, name, g.grantee::regrole, g.privilege_type) FROM (`+acls+`) AS o, aclexplode(o.acl) AS g
		WHERE g.grantee <> o.owner AND g.grantee::regrole::text <> ALL ('{`+everybody+`}') OR g.grantee = 0 OR g.is_grantable`)
	none("a right to a partition", `SELECT c.relname || ' ' || g.grantee::regrole FROM pg_class c, aclexplode(c.relacl) AS g
		WHERE c.relispartition AND g.grantee NOT IN (c.relowner, 'quipu_shop_owner'::regrole)`)
	none("rights to what is made later", "SELECT defaclobjtype::text FROM pg_default_acl")
	none("another owner", `SELECT kind || ' ' || name FROM (`+acls+`) AS o WHERE owner <> 'quipu'::regrole`)
	none("a role in another one", `SELECT member::regrole || ' in ' || roleid::regrole FROM pg_auth_members WHERE member::regrole::text = ANY ('{`+everybody+`}')`)
	none("a function that others can lead astray", `SELECT proname::text FROM pg_proc
		WHERE pronamespace = 'quipu_shop'::regnamespace AND prosecdef AND prosqlbody IS NULL AND NOT coalesce(proconfig::text LIKE '%search_path%', false)`)
	none("a table without policies that some read in part", `SELECT c.relname::text FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid
		WHERE c.relnamespace = 'quipu_shop'::regnamespace AND NOT c.relrowsecurity`)
}
