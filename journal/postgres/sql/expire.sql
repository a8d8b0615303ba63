-- name: expire_mark
-- makes tombstones of closed jobs whose time has passed (J7), before anything of them is removed. Their expires_at
-- stays until nothing is left. A job stays while a job of its compensations is ordered or not closed: that one reads
-- its record (3.5); OFFSET 0 keeps these look-ups by index. $1 limit. Returns their number.
WITH late AS MATERIALIZED (
    SELECT j.id
    FROM jobs j
    WHERE j.expires_at <= (SELECT micros()) AND j.state IN ('completed', 'failed', 'interrupted')
      AND NOT EXISTS (SELECT FROM dispatches d WHERE d.sender = j.id AND d.undo OFFSET 0)
      AND NOT EXISTS (SELECT FROM jobs u WHERE u.parent_job = j.id AND u.flow_name = 'quipu_undo' AND u.state IN ('open', 'quarantined') OFFSET 0)
    ORDER BY j.expires_at
    LIMIT $1::int8
    FOR UPDATE OF j SKIP LOCKED
), marked AS (
    UPDATE jobs j SET state = 'expired' FROM late WHERE j.id = late.id RETURNING 1
)
SELECT count(*) FROM marked

-- name: expire_take
-- tombstones of which more is left, locked, those of others skipped. $1 limit. Returns id and n of each.
WITH current AS MATERIALIZED (
    SELECT j.id, j.n
    FROM jobs j
    WHERE j.expires_at <= (SELECT micros()) AND j.state = 'expired'
    ORDER BY j.expires_at
    LIMIT $1::int8
    FOR UPDATE SKIP LOCKED
), replaced AS MATERIALIZED (
    SELECT t.id, t.n FROM tombs t WHERE t.expires_at IS NOT NULL ORDER BY t.expires_at LIMIT $1::int8 FOR UPDATE SKIP LOCKED
)
SELECT id, n FROM current UNION ALL SELECT id, n FROM replaced LIMIT $1::int8

-- name: expire_entries
-- removes entries of tombstones. $1 the jobs' n, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM entries x
    USING (SELECT x.n, x.ctid FROM unnest($1::int8[]) AS j (n) JOIN entries x ON x.n = j.n LIMIT $2::int8) AS w
    WHERE x.n = w.n AND x.ctid = w.ctid
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: expire_instances
-- removes instances of tombstones. $1 the jobs' n, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM instances x
    USING (SELECT x.n, x.ctid FROM unnest($1::int8[]) AS j (n) JOIN instances x ON x.n = j.n LIMIT $2::int8) AS w
    WHERE x.n = w.n AND x.ctid = w.ctid
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: expire_receipts
-- removes receipts of tombstones. $1 the jobs' n, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM receipts x
    USING (SELECT x.n, x.ctid FROM unnest($1::int8[]) AS j (n) JOIN receipts x ON x.n = j.n LIMIT $2::int8) AS w
    WHERE x.n = w.n AND x.ctid = w.ctid
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: expire_dispatches
-- removes dispatch rows of tombstones. $1 jobs, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM dispatches WHERE ctid = ANY (ARRAY(SELECT ctid FROM dispatches WHERE job = ANY ($1::uuid[]) LIMIT $2::int8)) RETURNING 1
)
SELECT count(*) FROM gone

-- name: expire_waits
-- removes waits of tombstones. $1 jobs, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM waits WHERE ctid = ANY (ARRAY(SELECT ctid FROM waits WHERE job = ANY ($1::uuid[]) LIMIT $2::int8)) RETURNING 1
)
SELECT count(*) FROM gone

-- name: expire_woken
-- removes records of pauses of tombstones. $1 the jobs' n, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM woken x
    USING (SELECT x.n, x.ctid FROM unnest($1::int8[]) AS j (n) JOIN woken x ON x.n = j.n LIMIT $2::int8) AS w
    WHERE x.n = w.n AND x.ctid = w.ctid
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: expire_effects
-- removes effects of tombstones. $1 the jobs' n, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM effects x
    USING (SELECT x.n, x.ctid FROM unnest($1::int8[]) AS j (n) JOIN effects x ON x.n = j.n LIMIT $2::int8) AS w
    WHERE x.n = w.n AND x.ctid = w.ctid
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: expire_payloads
-- removes payloads of tombstones. $1 the jobs' n, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM payloads x
    USING (SELECT x.n, x.ctid FROM unnest($1::int8[]) AS j (n) JOIN payloads x ON x.n = j.n LIMIT $2::int8) AS w
    WHERE x.n = w.n AND x.ctid = w.ctid
    RETURNING 1
)
SELECT count(*) FROM gone

-- name: expire_dead_letters
-- removes dead letters of tombstones. $1 jobs, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM dead_letters WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letters WHERE job = ANY ($1::uuid[]) LIMIT $2::int8)) RETURNING 1
)
SELECT count(*) FROM gone

-- name: expire_done
-- notes of tombstones that nothing is left of them. $1 jobs, $2 the n of each.
WITH clean AS MATERIALIZED (
    SELECT w.id FROM unnest($1::uuid[], $2::int8[]) AS w (id, n)
    WHERE NOT EXISTS (SELECT FROM entries x WHERE x.n = w.n)
      AND NOT EXISTS (SELECT FROM instances x WHERE x.n = w.n)
      AND NOT EXISTS (SELECT FROM receipts x WHERE x.n = w.n)
      AND NOT EXISTS (SELECT FROM dispatches x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM waits x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM woken x WHERE x.n = w.n)
      AND NOT EXISTS (SELECT FROM effects x WHERE x.n = w.n)
      AND NOT EXISTS (SELECT FROM payloads x WHERE x.n = w.n)
      AND NOT EXISTS (SELECT FROM dead_letters x WHERE x.job = w.id)
), current AS (
    UPDATE jobs j SET expires_at = NULL FROM clean WHERE j.id = clean.id AND j.state = 'expired'
)
UPDATE tombs t SET expires_at = NULL FROM clean WHERE t.id = clean.id

-- name: prune
-- removes markers older than $1 microseconds (J4), records of signals older than $2 whose row is gone, and tombstones
-- of keys used again older than $3 of which nothing else is left; at most $4 of each. Returns their number.
WITH markers AS MATERIALIZED (
    SELECT session, seq FROM batches WHERE at < (SELECT micros() - $1::int8) ORDER BY at LIMIT $4::int8
), records AS MATERIALIZED (
    SELECT guid FROM signals WHERE at < (SELECT micros() - $2::int8) AND state <> 'kept' ORDER BY at LIMIT $4::int8
), old AS MATERIALIZED (
    SELECT t.id FROM tombs t
    WHERE t.at < (SELECT micros() - $3::int8) AND t.expires_at IS NULL AND NOT EXISTS (SELECT FROM dispatches d WHERE d.job = t.id)
    ORDER BY t.at LIMIT $4::int8
), m AS (
    DELETE FROM batches b USING markers WHERE b.session = markers.session AND b.seq = markers.seq RETURNING 1
), s AS (
    DELETE FROM signals USING records WHERE signals.guid = records.guid RETURNING 1
), t AS (
    DELETE FROM tombs USING old WHERE tombs.id = old.id RETURNING 1
)
SELECT (SELECT count(*) FROM m) + (SELECT count(*) FROM s) + (SELECT count(*) FROM t)
