package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// leftLaw is I6 when all jobs have ended, beside what the verifier finds open: no dead letter is
// open.
var leftLaw = law{"I6", `
	SELECT format('job %s: dead letter of %s %s %s %s: %s: %s', job, kind, guid, activity, dad, reason, message)
	FROM dead_letters WHERE state = 'open'`}

// effectsOnce is I1: what was recorded is what the service outside applied, and
// every call of every job was applied under one key. That the rows are those of the
// journal is V8 and V9.
func effectsOnce(ctx context.Context, w *facts) error {
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
		for _, call := range called(id) {
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
var totalLaw = law{"I13", `SELECT format('the accounts have %s together, not %s', sum(balance), $1::bigint) FROM accounts HAVING sum(balance) <> $1`}

// moneyKept is I13 at the end: the transfer of each job was made once.
func moneyKept(ctx context.Context, w *facts) error {
	if err := totalLaw.hold(ctx, w.db, bankTotal); err != nil {
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
		order := orderOf(id)
		want[order.From] -= order.Amount
		want[order.To] += order.Amount
	}
	rows, err := w.db.Query(ctx, "SELECT id, balance FROM accounts")
	if err != nil {
		return err
	}
	got := map[int]int{}
	var id, balance int
	if _, err := pgx.ForEachRow(rows, []any{&id, &balance}, func() error {
		got[id] = balance
		return nil
	}); err != nil {
		return err
	}
	if !maps.Equal(got, want) {
		lines = append(lines, fmt.Sprintf("the accounts have %v, the transfers of the jobs give %v", got, want))
	}
	return wrongIf("I13", lines)
}

// outputs holds each job to what its flow gives, by the books of the service
// outside (C9): there is the job and one child of it, and nothing else.
func outputs(ctx context.Context, w *facts) error {
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
	got, err := column(ctx, w.db, `SELECT format('%s of %s, started by %s', replace(x.out, '": ', '":'), CASE WHEN p.id IS NULL THEN j.key ELSE 'a child' END, p.key)
		FROM jobs j LEFT JOIN jobs p ON p.id = j.parent_job
		LEFT JOIN LATERAL (SELECT replace((e -> 'c' -> 'o')::text, ', "', ',"') AS out
			FROM (SELECT convert_from(body, 'UTF8')::jsonb AS e FROM entries WHERE job = j.id AND chain = '00000000-0000-0000-0000-000000000000') e
			WHERE e ->> 'do' LIKE '%t%') x ON true`)
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
