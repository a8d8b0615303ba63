-- prune: removes markers older than $1 microseconds (J4), records of signals older than $2 whose row is gone, and tombstones of keys used again older than $3 of which nothing else is left; at most $4 of each. Returns their number.
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
