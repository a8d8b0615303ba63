package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/tests/faults/play"
)

// entriesRead reads what the bodies say, of the main chain and of those of effects.
const entriesRead = `entry AS MATERIALIZED (
	SELECT job, chain, seq, chain = '00000000-0000-0000-0000-000000000000' AS main, convert_from(body, 'UTF8')::jsonb AS e
	FROM entries)`

// obligations are what a job still has to do (C13): each Leg1 message that was not
// entered, each instance that was and is not final, and the trigger until its
// step 2. The activities of the cell's flow make no passes.
const obligations = `obligation AS (
	SELECT job, activity, dad FROM dispatches WHERE kind = 'leg1'
	UNION
	SELECT job, activity, dad_text FROM instances
	WHERE ledger / 1000000000000 % 100 > 0 AND ledger / 100000000000000 = 0
	UNION
	SELECT j.id, j.trigger, ',0' FROM jobs j JOIN receipts r ON r.job = j.id AND r.guid = j.id
	WHERE r.ledger / 1000000000 % 10 = 0)`

// digitsLaw is I2: each digit of 1.2 and 1.3 by itself, read from the decimal
// text. In the cell's flow a join has two arrivals.
var digitsLaw = law{"I2", []string{
	`SELECT format('job %s: activity ledger %s of %s %s', job, d, activity, dad_text)
	FROM instances, LATERAL (SELECT lpad(ledger::text, 15, '0') AS d) x
	WHERE ledger >= 1000000000000000 OR d !~ '^[012][0-9][0-9][01][01][0-9]{10}$'
		OR left(d, 1) = '1' AND left(d, 4) <> '1011'
		OR left(d, 1) = '2' AND substr(d, 4, 1) <> '1'
		OR substr(d, 4, 1) = '1' AND substr(d, 2, 2) = '00'
		OR substr(d, 2, 1) = '9'
		OR substr(d, 5, 3) <> '000' AND NOT is_join
		OR substr(d, 6, 2) > '02'
		OR substr(d, 5, 1) = '1' AND substr(d, 6, 2) = '00'`,
	`SELECT format('job %s: GUID ledger %s of %s, %s', job, d, guid, verdict)
	FROM receipts, LATERAL (SELECT lpad(ledger::text, 15, '0') AS d) x
	WHERE ledger >= 1000000000000000 OR d !~ '^000[01]{4}[0-9]{8}$'
		OR substr(d, 6, 1) > substr(d, 5, 1) OR substr(d, 4, 1) > substr(d, 6, 1) OR substr(d, 7, 1) > substr(d, 4, 1)
		OR verdict = 'stale' AND ledger <> 0`,
}}

// semaphoreLaw is I4, at any time: the semaphore is the number of obligations,
// recounted from the tables, and 0 of a job that is closed.
var semaphoreLaw = law{"I4", []string{
	`WITH ` + obligations + `
	SELECT format('job %s (%s) is %s with semaphore %s, its open obligations are %s: %s', id, key, state, semaphore, counted, what)
	FROM jobs, LATERAL (SELECT count(*) AS counted, string_agg(activity || ' ' || dad, '; ') AS what FROM obligation WHERE job = id) x
	WHERE semaphore < 0 OR semaphore <> counted OR state NOT IN ('open', 'quarantined') AND semaphore <> 0`,
}}

// closedOnceLaw is I5 at any time; the journal's side of it is V7.
var closedOnceLaw = law{"I5", []string{
	`SELECT format('job %s (%s) is %s, its tasks by entry %s; it has %s snapshots, %s messages with step 3', id, key, state, tasks_seq, snapshots, thirds)
	FROM jobs, LATERAL (SELECT count(*) FILTER (WHERE ledger / 100000000000 % 10 > 0) AS snapshots,
		count(*) FILTER (WHERE ledger / 100000000 % 10 > 0) AS thirds FROM receipts WHERE job = id) x
	WHERE state <> 'quarantined' AND snapshots <> (state <> 'open')::int OR thirds <> (tasks_seq IS NOT NULL)::int`,
}}

// nothingLeftLaw is I6 when all jobs have ended: no row, no wait, no open dead
// letter. That no message has steps left is V4.
var nothingLeftLaw = law{"I6", []string{
	`SELECT format('job %s: row %s %s of %s %s, held %s, due %s, publication %s, turn %s, of entry %s',
		job, kind, guid, activity, dad, held, next_at, publication, turn, origin) FROM dispatches`,
	`SELECT format('job %s: wait %s of %s %s for %s with key %s', job, guid, activity, dad, topic, key) FROM waits`,
	`SELECT format('job %s: dead letter of %s %s %s %s: %s: %s', job, kind, guid, activity, dad, reason, message)
	FROM dead_letters WHERE state = 'open'`,
}}

// effectsOnce is I1: what was recorded is what the service outside applied, and
// every call of every job was applied under one key. That the rows are those of the
// journal is V8 and V9.
func effectsOnce(ctx context.Context, w *world) error {
	rows, err := w.db.Query(ctx, "SELECT encode(key, 'hex'), name || ' ' || convert_from(result, 'UTF8') FROM effects WHERE class IN ('idempotent', 'guarded') AND state = 'completed'")
	if err != nil {
		return err
	}
	var lines []string
	recorded := map[string]bool{}
	var key, what string
	_, err = pgx.ForEachRow(rows, []any{&key, &what}, func() error {
		if recorded[key] {
			lines = append(lines, "key "+key+" has two rows")
		}
		recorded[key] = true
		asked, applied := w.applied[key]
		name, result, _ := strings.Cut(what, " ")
		if !applied || !strings.HasPrefix(asked, name+" ") || result != `{"receipt":"`+key+`"}` {
			lines = append(lines, fmt.Sprintf("key %s is recorded as %s, the service outside applied it: %t, for %q", key, what, applied, asked))
		}
		return nil
	})
	if err != nil {
		return err
	}
	keys := map[string]int{}
	for key, what := range w.applied {
		keys[what]++
		if !recorded[key] {
			lines = append(lines, fmt.Sprintf("key %s was applied for %q and is not recorded", key, what))
		}
	}
	for _, id := range w.jobs {
		for _, call := range play.Called(id) {
			if keys[call] != 1 {
				lines = append(lines, fmt.Sprintf("%q was applied under %d keys", call, keys[call]))
			}
			delete(keys, call)
		}
	}
	if len(keys) > 0 {
		lines = append(lines, fmt.Sprintf("applied, and of no job: %v", keys))
	}
	if w.asked < len(w.applied) {
		lines = append(lines, fmt.Sprintf("the service outside was asked %d times and applied %d keys", w.asked, len(w.applied)))
	}
	return wrongIf("I1", lines)
}

// totalLaw is I13 at any time; $1 is the total.
var totalLaw = law{"I13", []string{
	`SELECT format('the accounts have %s together, not %s', sum(balance), $1::bigint) FROM accounts HAVING sum(balance) <> $1`,
}}

// moneyKept is I13 at the end: the transfer of each job was made once.
func moneyKept(ctx context.Context, w *world) error {
	if err := totalLaw.hold(ctx, w.db, play.Total); err != nil {
		return err
	}
	noted, err := column(ctx, w.db, "SELECT id FROM transfers")
	if err != nil {
		return err
	}
	var lines []string
	if slices.Sort(noted); !slices.Equal(noted, w.jobs) {
		lines = append(lines, fmt.Sprintf("the transfers noted are %v, the jobs %v", noted, w.jobs))
	}
	want := map[int]int{0: 1000, 1: 1000, 2: 1000, 3: 1000}
	for _, id := range w.jobs {
		order := play.OrderOf(id)
		want[order.From] -= order.Amount
		want[order.To] += order.Amount
	}
	rows, err := w.db.Query(ctx, "SELECT id, balance FROM accounts")
	if err != nil {
		return err
	}
	got := map[int]int{}
	var id, balance int
	if _, err := pgx.ForEachRow(rows, []any{&id, &balance}, func() error { got[id] = balance; return nil }); err != nil {
		return err
	}
	if !maps.Equal(got, want) {
		lines = append(lines, fmt.Sprintf("the accounts have %v, the transfers of the jobs give %v", got, want))
	}
	return wrongIf("I13", lines)
}

// outputs holds each job to what its flow gives, by the books of the service
// outside (C9): there is the job and one child of it, and nothing else.
func outputs(ctx context.Context, w *world) error {
	keys := map[string]string{}
	for key, what := range w.applied {
		keys[what] = key
	}
	var want []string
	for _, id := range w.jobs {
		leaf := fmt.Sprintf(`{"receipt":"%s"}`, keys["rest "+id])
		want = append(want, fmt.Sprintf(`{"leaf":%s,"trip":"%s","receipt":"%s"} of %s, started by `, leaf, id, keys["charge "+id], id),
			fmt.Sprintf(`%s of a child, started by %s`, leaf, id))
	}
	got, err := column(ctx, w.db, `WITH `+entriesRead+`
		SELECT format('%s of %s, started by %s', replace(x.out, '": ', '":'), CASE WHEN p.id IS NULL THEN j.key ELSE 'a child' END, p.key)
		FROM jobs j LEFT JOIN jobs p ON p.id = j.parent_job
		LEFT JOIN LATERAL (SELECT replace((e -> 'c' -> 'o')::text, ', "', ',"') AS out FROM entry WHERE job = j.id AND main AND e ->> 'do' LIKE '%t%') x ON true`)
	if err != nil {
		return err
	}
	slices.Sort(want)
	slices.Sort(got)
	var lines []string
	for _, x := range want {
		if !slices.Contains(got, x) {
			lines = append(lines, "expected: "+x)
		}
	}
	for _, x := range got {
		if !slices.Contains(want, x) {
			lines = append(lines, "there is: "+x)
		}
	}
	if len(lines) == 0 && len(got) != len(want) {
		lines = append(lines, fmt.Sprintf("%d jobs: %v", len(got), got))
	}
	return wrongIf("C9", lines)
}
