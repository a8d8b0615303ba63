package attacks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/workers"
)

// gated waits for a signal between what is attacked and what reads it.
const gated = `
flow: gated
version: "1"
activities:
  start: {type: trigger}
  big: {type: worker, topic: big, input: "${ start.output }"}
  gate: {type: hook, signal: go, key: "${ job.id }"}
  use: {type: worker, topic: use, input: {said: "${ big.output.said }"}}
transitions: {start: [big], big: [gate], gate: [use]}
output: "${ use.output }"
`

// gatedHandlers have one whose output is stored beside its entry (E6).
func gatedHandlers() *workers.Registry {
	reg := workers.New()
	workers.Handle(reg, "big", func(context.Context, map[string]string) (map[string]string, error) {
		return map[string]string{"said": "pay 10" + strings.Repeat(" ", 300<<10)}, nil
	})
	workers.Handle(reg, "use", func(_ context.Context, in map[string]string) (int, error) { return len(in["said"]), nil })
	return reg
}

// sql is what somebody with a login of the tables' owner does.
func (g *target) sql(statement string, args ...any) (rows int64) {
	g.t.Helper()
	c := g.admin()
	defer c.Close(context.Background())
	tag, err := c.Exec(g.t.Context(), statement, args...)
	require.NoError(g.t, err)
	return tag.RowsAffected()
}

// waiting starts jobs and waits until each waits for its signal.
func (g *target) waiting(rt *quipu.Runtime, keys ...string) (ids []journal.JobID) {
	g.t.Helper()
	for _, key := range keys {
		job, err := rt.Start(g.t.Context(), "gated", key, map[string]string{"said": "pay 10"})
		require.NoError(g.t, err)
		ids = append(ids, job.ID)
	}
	for _, id := range ids {
		g.until(func() bool {
			v, err := below.Of(rt).Job(g.t.Context(), id)
			require.NoError(g.t, err)
			return len(v.Waits) == 1
		})
	}
	return ids
}

func (g *target) signal(rt *quipu.Runtime, keys ...string) {
	g.t.Helper()
	for _, key := range keys {
		_, err := rt.Signal(g.t.Context(), "go", key, nil)
		require.NoError(g.t, err)
	}
}

// until waits for something of the database.
func (g *target) until(there func() bool) {
	g.t.Helper()
	require.Eventually(g.t, there, patience, 10*time.Millisecond)
}

// entries reads the main chain of a job.
func (g *target) entries(st store.Store, id journal.JobID) (all []journal.Record) {
	g.t.Helper()
	require.NoError(g.t,
		st.Audit(g.t.Context(), id, func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
			for r, err := range records {
				if err != nil {
					return err
				}
				if r.Chain.IsZero() {
					r.Body = bytes.Clone(r.Body)
					all = append(all, r)
				}
			}
			return nil
		}))
	return all
}

// quarantined wants the job to stand still, with a dead letter that names the row.
func (g *target) quarantined(st store.Store, id journal.JobID, row string) {
	g.t.Helper()
	g.until(func() bool {
		v, err := st.Job(g.t.Context(), id)
		require.NoError(g.t, err)
		return v.State == journal.JobQuarantined
	})
	v, err := st.Job(g.t.Context(), id)
	require.NoError(g.t, err)
	require.Len(g.t, v.Dead, 1)
	require.Equal(g.t, collation.ReasonChanged, v.Dead[0].Letter.Reason)
	require.Contains(g.t, v.Dead[0].Letter.Message, row)
	require.Equal(g.t, collation.LetterOpen, v.Dead[0].State)
}

// violates wants the verifier to find these checks violated in the journal of a job, and no other.
func (g *target) violates(st store.Store, id journal.JobID, checks ...replay.Check) {
	g.t.Helper()
	report, err := store.VerifyJob(g.t.Context(), st, id, nil, nil)
	require.NoError(g.t, err)
	var found []replay.Check
	for _, c := range report.Checks {
		if c.Status == replay.Violated {
			found = append(found, c.Check)
		}
	}
	require.Equal(g.t, checks, found, "%v", report.First)
}

// S9: a stored output that somebody has changed is not used. The job that reads it is
// quarantined; another job of the same batch goes on.
func TestAttackAStoredOutputIsChanged(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	rt := g.open(gatedHandlers())
	g.Deploy(rt, gated)
	g.Run(rt)
	ids := g.waiting(rt, "attacked", "honest")
	n := g.sql(`UPDATE payloads SET body = convert_to(replace(convert_from(body, 'UTF8'), 'pay 10', 'pay 99'), 'UTF8')
		WHERE n = (SELECT n FROM jobs WHERE id = $1)`, ids[0].String())
	require.EqualValues(t, 1, n)
	g.signal(rt, "attacked", "honest")
	out, err := rt.Wait(devtest.Context(t), quipu.Job{ID: ids[1]})
	require.NoError(t, err)
	require.JSONEq(t, "307206", string(out))
	_, err = rt.Wait(devtest.Context(t), quipu.Job{ID: ids[0]})
	var failed *quipu.JobError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, journal.JobQuarantined, failed.State)
	g.quarantined(below.Of(rt), ids[0], "payloads of job "+ids[0].String()+", digest ")
	g.violates(below.Of(rt), ids[0], replay.V18)
	g.violates(below.Of(rt), ids[1])
	_, err = rt.History(t.Context(), quipu.Job{ID: ids[0]})
	require.NoError(t, err, "what was changed is shown as missing")
}

// S9: a definition that somebody has changed under open jobs is not used by a process that reads
// it anew. Nobody answers the request of the second job, so only the sweeper can notice.
func TestAttackADefinitionIsChanged(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	before := g.open(gatedHandlers(), func(c *quipu.Config) {
		c.Roles = []quipu.Role{quipu.RoleEngine, quipu.RoleWorkers}
	})
	g.Deploy(before, gated)
	stop := g.Run(before)
	ids := g.waiting(before, "attacked")
	stop()
	silent, err := before.Start(t.Context(), "gated", "silent", map[string]string{})
	require.NoError(t, err)
	before.Close()

	other, err := flow.Parse("attack.yaml", []byte(strings.Replace(gated, `{said: "${ big.output.said }"}`, `{said: "pay 99"}`, 1)))
	require.NoError(t, err)
	digest := sha256.Sum256(other.Canonical())
	require.EqualValues(t, 1, g.sql(`UPDATE flows SET definition = $1, digest = $2 WHERE name = 'gated'`, other.Canonical(), digest[:]))

	after := g.open(gatedHandlers())
	g.Run(after)
	g.signal(after, "attacked")
	g.quarantined(below.Of(after), ids[0], "flows, name gated, version 1")
	g.quarantined(below.Of(after), silent.ID, "flows, name gated, version 1")
	for _, id := range []journal.JobID{ids[0], silent.ID} {
		g.violates(below.Of(after), id, replay.V1, replay.V19)
	}
}

// S9: a result in an entry that somebody has changed, with a hash that fits, is not used: who can
// write the table has no key.
func TestAttackAResultInAnEntryIsChanged(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	rt := g.open(nil, func(c *quipu.Config) { c.HotBytes = -1 }) // so that the entries are read again
	st := below.Of(rt)
	g.Deploy(rt, `
flow: short
version: "1"
activities:
  start: {type: trigger}
  gate: {type: hook, signal: go, key: "${ job.id }"}
transitions: {start: [gate]}
output: "${ start.output.said }"
`)
	g.Run(rt)
	keys := []string{"changed", "stripped", "moved", "honest"}
	ids := map[string]journal.JobID{}
	for _, key := range keys {
		job, err := rt.Start(t.Context(), "short", key, map[string]string{"said": "pay 10"})
		require.NoError(t, err)
		ids[key] = job.ID
		g.until(func() bool {
			v, err := st.Job(t.Context(), job.ID)
			require.NoError(t, err)
			return len(v.Waits) == 1
		})
	}
	g.forge(st, ids["changed"], `pay 10`, `pay 99`, "mac")
	g.forge(st, ids["stripped"], `pay 10`, `pay 99`, "NULL")
	g.forge(st, ids["moved"], `pay 10`, `pay 10`, "(SELECT e.mac FROM entries e JOIN jobs j ON j.n = e.n WHERE e.seq = 1 AND j.key = 'honest')")
	for _, key := range keys {
		g.signal(rt, key)
	}
	for _, key := range keys[:3] {
		g.quarantined(st, ids[key], "entries of job "+ids[key].String()+", seq 1")
	}
	g.violates(st, ids["changed"], replay.V2)
	g.violates(st, ids["stripped"], replay.V2)
	g.until(func() bool {
		o, err := st.Outcomes(t.Context(), []journal.JobID{ids["honest"]})
		require.NoError(t, err)
		return o[ids["honest"]].Ended && string(o[ids["honest"]].Output) == `"pay 10"`
	})
}

// S9: a row of an instance that somebody has pointed to another entry gives its job no other result:
// that entry is as it was written, but of another activity.
func TestAttackAResultIsTakenFromAnotherEntry(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	reg := workers.New()
	workers.Handle(reg, "price", func(context.Context, any) (string, error) { return "pay 10", nil })
	rt := g.open(reg, func(c *quipu.Config) { c.HotBytes = -1 }) // so that the row is read again
	g.Deploy(rt, `
flow: gated
version: "1"
activities:
  start: {type: trigger}
  price: {type: worker, topic: price}
  gate: {type: hook, signal: go, key: "${ job.id }"}
transitions: {start: [price], price: [gate]}
output: "${ price.output }"
`)
	g.Run(rt)
	ids := g.waiting(rt, "attacked", "honest")
	require.EqualValues(t, 1, g.sql(`UPDATE instances i SET result_seq = s.result_seq FROM instances s
		WHERE i.n = s.n AND i.activity = 'price' AND s.activity = 'start' AND i.n = (SELECT n FROM jobs WHERE id = $1)`, ids[0].String()))
	g.signal(rt, "attacked", "honest")
	g.quarantined(below.Of(rt), ids[0], "instances of job "+ids[0].String()+", activity price")
	out, err := quipu.WaitAs[string](t.Context(), rt, quipu.Job{ID: ids[1]})
	require.NoError(t, err)
	require.Equal(t, "pay 10", out)
}

// forge changes the first entry of a job and makes its hash fit; mac is its MAC from then on.
func (g *target) forge(st store.Store, id journal.JobID, old, with, mac string) {
	g.t.Helper()
	space, err := st.Space(g.t.Context())
	require.NoError(g.t, err)
	entries := g.entries(st, id)
	body := bytes.Replace(entries[0].Body, []byte(old), []byte(with), 1)
	hash := journal.Next(journal.Genesis(space, id, 1, journal.MainChain), body)
	require.EqualValues(g.t, 1, g.sql(`UPDATE entries SET body = $2, hash = $3, mac = `+mac+`
		WHERE seq = 1 AND chain = '00000000-0000-0000-0000-000000000000' AND n = (SELECT n FROM jobs WHERE id = $1)`, id.String(), body, hash[:]))
}
