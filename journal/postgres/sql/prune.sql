-- prune: removes markers older than $1 microseconds, at most $2 (J4). Returns their number.
WITH old AS MATERIALIZED (
    SELECT session, seq FROM batches WHERE at < (SELECT micros() - $1::int8) ORDER BY at LIMIT $2::int8
), gone AS (
    DELETE FROM batches b USING old WHERE b.session = old.session AND b.seq = old.seq RETURNING 1
)
SELECT count(*) FROM gone
