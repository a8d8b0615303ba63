package attacks

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

const besideFlow = `
flow: beside
version: "1"
activities:
  t: {type: trigger}
  a: {type: worker, topic: pay.charge, input: "${ t.output }"}
  b: {type: worker, topic: ship.label, input: "${ t.output }"}
transitions:
  t: [{to: a}, {to: b}]
`

// What comes of a statement.
const (
	no    = "refused"
	none  = "no row" // it sees none that it could change
	yes   = "done"
	check = "outside of a bound"
)

// come runs a statement in a transaction that is rolled back, and says what comes of it.
func (g *target) come(c *pgx.Conn, statement string) string {
	g.t.Helper()
	tx, err := c.Begin(g.t.Context())
	require.NoError(g.t, err)
	defer func() { require.NoError(g.t, tx.Rollback(g.t.Context())) }()
	tag, err := tx.Exec(g.t.Context(), statement)
	pg, failed := errors.AsType[*pgconn.PgError](err)
	switch {
	case failed && pg.Code == "42501":
		return no
	case failed && pg.Code == "23514":
		return check
	case err != nil:
		return err.Error()
	case tag.RowsAffected() == 0 && !tag.Select():
		return none
	}
	return yes
}

// Statements about rows of this job.
const (
	allSessions = "INSERT INTO batches (session, seq, at) SELECT s.session, n, 1 FROM (SELECT DISTINCT session FROM batches) s, generate_series(1, 2000) n ON CONFLICT DO NOTHING"
	ofSession   = "INSERT INTO sessions (name, build, roles, topics, lanes, engine, lease, renewed_at, since) SELECT 'thief', '', '{}', %s, 16, %s, %s, %s, 1"
	ofLetter    = "INSERT INTO dead_letters (job, guid, kind, activity, dad, reason, message, ledger, state, raw, stray, at) SELECT %s, 'request', '', '', %s, 'was it paid?', 0, 'open', ''::bytea, %s, 1"
	ofEffect    = "INSERT INTO effects (n, key, request, seq, name, class, not_done, state, fence, holder, turn, topic) SELECT j.n, %s, %s, 1, 'x', 'pure', 0, 'completed', 1, 'me', 1, '%s' FROM jobs j"
	ofEntry     = "INSERT INTO entries (n, chain, seq, body, hash) SELECT j.n, %s, 99, '{}', j.head_hash FROM jobs j"
	ofPayload   = "INSERT INTO payloads (n, digest, body) SELECT j.n, %s, '1' FROM jobs j"
	noID        = "'00000000-0000-0000-0000-000000000000'"
)

// asked is the row of a client, of the kind that is named first, with one column as it is not to be.
func asked(kind, id, column, value string) string {
	values := map[string]string{
		"activity": "''", "dad": "',0'", "topic": "''", "element": "0", "body": "'{}'", "next_at": "micros()", "dead": "false", "publication": "0", "turn": "0",
		"turn_sent": "0", "attempt": "0", "runs": "0", "fence": "0", "effects_seq": "0", "origin": "0", "undo": "false", "rev": "0",
	}
	if column != "" {
		values[column] = value
	}
	var names, gives []string
	for name, v := range values {
		names, gives = append(names, name), append(gives, v)
	}
	return fmt.Sprintf("INSERT INTO dispatches (guid, job, kind, %s) SELECT gen_random_uuid(), %s, '%s', %s", strings.Join(names, ", "), id, kind, strings.Join(gives, ", "))
}

// crowd is a space with a login of each kind, and a job whose requests two workers hold.
type crowd struct {
	*target
	admin     *pgx.Conn
	engine    *quipu.Runtime
	by        map[string]*pgx.Conn
	job       quipu.Job
	mine      string // the request of the worker's topic
	theirs    string // that of another topic
	goOn      func() // lets the handlers go on
	theirKey  string // of an effect of that request
	clientDSN string
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	g := &crowd{target: newTarget(t), by: map[string]*pgx.Conn{}}
	g.admin = g.target.admin()
	g.Deploy(g.roles(), besideFlow)
	held := make(chan struct{})
	g.goOn = func() { close(held) }
	charge := g.login(g.admin, "worker", "pay.charge")
	for topic, login := range map[string]string{"pay.charge": charge, "ship.label": g.login(g.admin, "worker", "ship.label")} {
		reg := workers.New()
		workers.Handle(reg, topic, func(ctx context.Context, _ map[string]any) (string, error) {
			for _, name := range []string{"first", "second"} {
				_, err := effects.Do(ctx, name, func(context.Context) (string, error) {
					return name, nil
				}, effects.Idempotent)
				if err != nil {
					return "", err
				}
				<-held
			}
			return topic, nil
		})
		g.Run(g.open(reg, as(login, quipu.RoleWorkers)))
	}
	g.engine = g.open(nil, as(g.login(g.admin, "engine"), quipu.RoleEngine))
	g.Run(g.engine)
	var err error
	g.job, err = g.engine.Start(t.Context(), "beside", "one", map[string]any{"card": "4111"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return g.count(g.admin, "effects WHERE state = 'completed'") == 2 }, patience, 10*time.Millisecond)
	of := func(column, from string) (text string) {
		require.NoError(t, g.admin.QueryRow(t.Context(), "SELECT quote_literal("+column+") FROM "+from).Scan(&text))
		return text + "::uuid"
	}
	g.mine = of("guid", "dispatches WHERE topic = 'pay.charge'")
	g.theirs = of("guid", "dispatches WHERE topic = 'ship.label'")
	require.NoError(t, g.admin.QueryRow(t.Context(), `SELECT '''\x' || encode(key, 'hex') || '''::bytea' FROM effects WHERE topic = 'ship.label'`).Scan(&g.theirKey))
	g.clientDSN = g.login(g.admin, "client")
	for who, dsn := range map[string]string{
		"client": g.clientDSN, "worker": charge, "retention": g.login(g.admin, "retention"), "verifier": g.login(g.admin, "verifier"), "stranger": g.stranger(),
	} {
		g.by[who] = g.connect(dsn)
	}
	return g
}

// stranger makes a login of the database that was given nothing.
func (g *crowd) stranger() string {
	dsn := g.login(g.admin, "client")
	name := strings.TrimPrefix(strings.Split(dsn, ":secret@")[0], "postgres://")
	_, err := g.admin.Exec(g.t.Context(), "REVOKE quipu_shop_client FROM "+name)
	require.NoError(g.t, err)
	return dsn
}

// TestWhatALoginWrites_S8: somebody who has the login of a client, of a worker, of retention or of a
// verifier, or any login of the database, writes nothing by which others are misled, stopped or shown
// something, but for what docs/security.md says.
func TestWhatALoginWrites_S8(t *testing.T) {
	t.Parallel()
	g := newCrowd(t)
	tried := map[string]bool{}
	for _, x := range g.acts() {
		tried[x.cell()] = true
		t.Run(x.cell(), func(t *testing.T) {
			in := *g.target
			in.t = t
			require.Equal(t, x.comes, in.come(g.by[x.who], x.does), "%s: %s", x.who, x.does)
		})
	}
	g.triesAll(tried)
	require.Zero(t, g.count(g.by["worker"], "entries WHERE chain = "+g.theirs), "what another topic did")
	require.Zero(t, g.count(g.by["worker"], "effects WHERE request = "+g.theirs))
	for _, table := range g.tables() {
		for _, who := range []string{"client", "worker", "verifier", "stranger"} {
			require.Equal(t, no, g.come(g.by[who], "LOCK TABLE quipu_shop."+table+" IN SHARE MODE"), "%s %s", who, table)
		}
		for _, does := range []string{"SELECT FROM %s", "INSERT INTO %s DEFAULT VALUES", "DELETE FROM %s", "TRUNCATE %s"} {
			require.Equal(t, no, g.come(g.by["stranger"], fmt.Sprintf(does, "quipu_shop."+table)), table)
		}
		for _, does := range []string{"INSERT INTO %s DEFAULT VALUES", "DELETE FROM %s", "TRUNCATE %s"} {
			require.Equal(t, no, g.come(g.by["verifier"], fmt.Sprintf(does, table)), table)
		}
	}
	// The keys that a worker's login chooses take no place, and no marker of another login that of a batch, even if
	// somebody knew the sessions.
	require.Positive(t, g.changed(g.by["worker"], fmt.Sprintf(ofEffect, g.theirKey, g.mine, "pay.charge")))
	known := strings.ReplaceAll(allSessions, "SELECT DISTINCT session FROM batches", "SELECT unnest('{"+g.sessions()+"}'::uuid[]) AS session")
	require.Positive(t, g.changed(g.by["client"], known))
	require.Positive(t, g.changed(g.by["worker"], strings.Replace(fmt.Sprintf(ofSession, "'{}'", "false", "3600000000", "micros()"), "16", "7", 1)))
	// the lanes of a worker's session are not those of engines
	g.Run(g.open(nil, as(g.login(g.admin, "engine"), quipu.RoleEngine)))
	g.goOn()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := g.engine.Wait(ctx, g.job)
	require.NoError(t, err, "the work of both topics is done")
}

// sessions are those of all committers.
func (g *crowd) sessions() (all string) {
	require.NoError(g.t, g.admin.QueryRow(g.t.Context(), "SELECT string_agg(DISTINCT session::text, ',') FROM batches").Scan(&all))
	return all
}

// tables are those of the space, but for partitions.
func (g *crowd) tables() (all []string) {
	rows, err := g.admin.Query(g.t.Context(), "SELECT relname FROM pg_class WHERE relnamespace = 'quipu_shop'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1")
	require.NoError(g.t, err)
	all, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(g.t, err)
	require.Greater(g.t, len(all), 15)
	return all
}

type act struct{ who, does, comes string }

var written = regexp.MustCompile(`(INSERT) INTO (\w+)|(UPDATE) (\w+)|(DELETE) FROM (\w+)`)

// cell is whose act it is, and what it does to which table.
func (x act) cell() string {
	m := written.FindStringSubmatch(x.does)
	if m == nil {
		return x.who + "/" + strings.Fields(x.does)[0]
	}
	return x.who + "/" + strings.ToLower(m[1]+m[3]+m[5]+" "+m[2]+m[4]+m[6])
}

// triesAll requires an act for each right to write that the database gives to a login.
func (g *crowd) triesAll(tried map[string]bool) {
	who := []string{"client", "worker", "retention", "verifier", "stranger"}
	logins := make([]string, len(who))
	for i := range who {
		logins[i] = g.by[who[i]].Config().User
	}
	rights := 0
	for _, line := range g.granted(g.admin, logins...) {
		cells := strings.Split(line, " | ")
		table := strings.Trim(cells[0], "| `")
		for i, cell := range cells[1:] {
			for _, does := range []string{"insert", "update", "delete"} {
				if regexp.MustCompile(`(^|; )` + does).MatchString(cell) {
					rights++
					require.True(g.t, tried[who[i]+"/"+does+" "+table], "no act is tried: %s may %s %s", who[i], does, table)
				}
			}
		}
	}
	require.Greater(g.t, rights, 20)
}

func (g *crowd) acts() []act {
	job := "'" + g.job.ID.String() + "'::uuid"
	return slices.Concat(g.workers(), g.clients(job), g.others())
}

func (g *crowd) workers() []act {
	future := "micros() + 7200000000"
	all := []act{
		{"worker", fmt.Sprintf(ofEffect, "sha256('x')", g.theirs, "pay.charge"), no}, // the topic is that of the request
		{"worker", fmt.Sprintf(ofEffect, "sha256('x')", g.theirs, "ship.label"), no},
		{"worker", fmt.Sprintf(ofEffect, "sha256('x')", g.mine, "ship.label"), no},
		{"worker", fmt.Sprintf(ofEffect, g.theirKey, g.mine, "pay.charge"), yes},
		{"worker", fmt.Sprintf(ofEntry, g.theirs), no},
		{"worker", fmt.Sprintf(ofEntry, noID), no},
		{"worker", fmt.Sprintf(ofEntry, g.mine), yes},
		{"worker", fmt.Sprintf(ofPayload, "sha256('2')"), no}, // the digest is that of the bytes
		{"worker", fmt.Sprintf(ofPayload, "sha256('1')"), yes},
		{"worker", fmt.Sprintf(ofLetter, "j.id, "+g.theirs, "'undecodable'", "0") + " FROM jobs j", no},
		{"worker", fmt.Sprintf(ofLetter, "j.id, "+g.mine, "'parked'", "0") + " FROM jobs j", no},
		{"worker", fmt.Sprintf(ofLetter, "j.id, "+g.mine, "'undecodable'", "NULL") + " FROM jobs j", no}, // nobody would bound it
		{"worker", fmt.Sprintf(ofLetter, "j.id, "+noID, "'undecodable'", "0") + " FROM jobs j", no},
		{"worker", fmt.Sprintf(ofLetter, noID+"::uuid, "+noID+"::uuid", "'foreign'", "0"), yes},
		{"worker", fmt.Sprintf(ofLetter, noID+"::uuid, "+noID+"::uuid", "'foreign'", "0") + " + 9000000000000000000", no}, // no list could write this year
		{"worker", strings.Replace(fmt.Sprintf(ofLetter, noID+"::uuid, "+noID+"::uuid", "'foreign'", "0"), "'request'", "repeat('x', 70000)", 1), no},
		{"worker", "UPDATE dead_letters SET state = 'resolved'", none},
		{"worker", "UPDATE dispatches SET holder = 'me' WHERE guid = " + g.theirs, none},
		{"worker", "UPDATE dispatches SET holder = 'me'", yes},
		{"worker", "UPDATE effects SET result = '1' WHERE request = " + g.theirs, none},
		{"worker", fmt.Sprintf(ofSession, "'{pay.charge}'", "false", "1000000", "1"), yes},
		{"worker", fmt.Sprintf(ofSession, "'{ship.label}'", "false", "1000000", "1"), no},
		{"worker", fmt.Sprintf(ofSession, "'{}'", "true", "1000000", "1"), no},
		{"worker", fmt.Sprintf(ofSession, "'{}'", "false", "9223372036854775807", "1"), no}, // all others add to it
		{"worker", fmt.Sprintf(ofSession, "'{}'", "false", "1000000", future), no},
		{"worker", "INSERT INTO sessions (id) OVERRIDING SYSTEM VALUE VALUES (99)", no},
		{"worker", "INSERT INTO dead_letters (id) OVERRIDING SYSTEM VALUE VALUES (99)", no},
		{"worker", "UPDATE sessions SET dead = true", yes}, // those of its login
		{"worker", "UPDATE sessions SET dead = true WHERE login <> session_user", none},
		{"worker", "UPDATE sessions SET renewed_at = " + future, no},
		{"worker", "UPDATE sessions SET topics = '{ship.label}'", no},
		{"worker", "UPDATE sessions SET withdrawn = '{ship.label}'", no},
		{"worker", "DELETE FROM sessions", no},
		{"worker", "INSERT INTO signals (guid, job, state) VALUES (gen_random_uuid(), gen_random_uuid(), 'kept')", no},
	}
	for column, value := range map[string]string{
		"rev": "9223372036854775807", "fence": "9223372036854775807", "runs": "2147483647", "next_at": "-9223372036854775808", "effects_seq": "-1",
		"effects_hash": "'x'", "held": "'kept'", "holder": "repeat('x', 2000)",
	} { // a claim of many rows, or the end of a session, would fail on this one
		all = append(all, act{"worker", "UPDATE dispatches SET " + column + " = " + value, no})
	}
	return all
}

func (g *crowd) clients(job string) []act {
	all := []act{
		{"client", "INSERT INTO signals (guid, job, state) VALUES (gen_random_uuid(), gen_random_uuid(), 'consumed')", no},
		{"client", "INSERT INTO signals (guid, job, state) VALUES (gen_random_uuid(), gen_random_uuid(), 'kept')", no}, // nothing is on its way
		{"client", "INSERT INTO signals (guid, job, state, reason) VALUES (gen_random_uuid(), gen_random_uuid(), 'kept', 'why')", no},
		{"client", "INSERT INTO signals (guid, job, state, at) VALUES (gen_random_uuid(), gen_random_uuid(), 'kept', 1)", no},
		{"client", "UPDATE signals SET state = 'consumed'", no},
		{"client", fmt.Sprintf(ofLetter, "j.id, "+g.mine, "'parked'", "NULL") + " FROM jobs j", no},
		{"client", "UPDATE sessions SET build = 'x'", none},
		{"client", "UPDATE jobs SET trace = 'x'", no},
		{"client", "UPDATE dispatches SET rev = 1", none},
		{"worker", "UPDATE jobs SET trace = 'x'", no},
		{"client", "SELECT FROM jobs FOR UPDATE", yes},       // they stand still
		{"client", "SELECT FROM dispatches FOR UPDATE", yes}, // of those that it sees
		{"client", allSessions, no},
		{"worker", allSessions, no},
		{"worker", "SELECT FROM batches", no},
		{"client", "INSERT INTO batches (session, seq, at) VALUES (gen_random_uuid(), 1, 1)", yes},
		{"client", "INSERT INTO batches (session, seq, at, login) VALUES (gen_random_uuid(), 1, 1, 'engine')", no},
		{"worker", "INSERT INTO batches (session, seq, at, login) VALUES (gen_random_uuid(), 1, 1, 'engine')", no},
		{"client", asked("interrupt", job, "", ""), yes},
		{"client", asked("signal", "gen_random_uuid()", "", ""), yes},
		{"client", asked("interrupt", "gen_random_uuid()", "", ""), no}, // it would stand under an id that others need
		{"client", asked("request", job, "", ""), no},
	}
	for column, value := range map[string]string{
		"publication": "2147483647", "rev": "9223372036854775807", "fence": "9223372036854775807", "runs": "1", "next_at": "NULL", "turn": "7",
		"within_at": "1", "sender": job, "holder": "'me'", "session": "1", "held": "'kept'", "activity": "'a'", "undo": "true", "dead": "true", "origin": "5",
		"body": "repeat('x', 17000000)::bytea",
	} {
		all = append(all, act{"client", asked("interrupt", job, column, value), no})
	}
	return append(all, act{"client", asked("interrupt", job, "next_at", "micros() + 86400000000"), no})
}

func (g *crowd) others() []act {
	all := []act{
		{"retention", "UPDATE jobs SET state = 'expired' WHERE state = 'open'", none},
		{"retention", "UPDATE jobs SET state = 'completed'", none},
		{"retention", "UPDATE jobs SET key = 'mine'", no},
		{"retention", "UPDATE jobs SET semaphore = 0", no},
		{"retention", "DELETE FROM jobs", none},
		{"retention", "DELETE FROM dispatches", none},
		{"retention", "DELETE FROM waits", none},
		{"retention", "DELETE FROM dead_letters", none},
		{"retention", "DELETE FROM batches", no},
		{"retention", "DELETE FROM signals", no},
		{"retention", "UPDATE space SET dropped = 1", yes},
		{"retention", "UPDATE space SET dropped = 9223372036854775807", check}, // nobody could count on
		{"retention", "UPDATE space SET floor = 9", yes},
		{"retention", "UPDATE space SET floor = 9223372036854775807", check}, // no job could begin
		{"verifier", "UPDATE jobs SET trace = ''", no},
		{"stranger", "SELECT quipu_shop.quipu_topics()", no},
		{"stranger", "SELECT quipu_shop.micros()", no},
	}
	for who := range g.by {
		all = append(all, act{who, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename <> session_user AND datname = current_database()", no},
			act{who, "CREATE TABLE quipu_shop.mine ()", no}, act{who, "CREATE TEMP TABLE mine (x quipu_shop.digest)", no}, act{who, "CREATE TEMP TABLE mine (x quipu_shop.jobs)", no})
		for _, does := range []string{"SELECT nextval('quipu_shop.numbers_days')", "SELECT setval('quipu_shop.numbers_days', 1)", "SELECT setval('quipu_shop.sessions_id_seq', 1)"} {
			all = append(all, act{who, does, no})
		}
	}
	return all
}

// The table of docs/security.md has a row for each table of the space.
func TestTheTableOfRightsIsWhole_S8(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	c := &crowd{target: g, admin: g.admin()}
	g.roles()
	table := section(t, "What each login can write")
	for _, name := range c.tables() {
		require.Contains(t, table, "`"+name+"`", "what can a login write there?")
	}
}
