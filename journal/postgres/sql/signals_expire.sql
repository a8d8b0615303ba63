-- signals_expire: removes kept signals whose time has passed: nobody waited for them. $1 limit. Returns their number.
WITH late AS MATERIALIZED (
    SELECT d.job, d.guid
    FROM dispatches d
    WHERE d.within_at IS NOT NULL AND d.within_at <= (SELECT micros()) AND d.kind = 'signal' AND d.held = 'kept'
    ORDER BY d.within_at
    LIMIT $1::int8
    FOR UPDATE OF d SKIP LOCKED
), gone AS (
    DELETE FROM dispatches d USING late WHERE d.job = late.job AND d.guid = late.guid RETURNING d.guid
), missed AS (
    UPDATE signals s SET state = 'missed' FROM gone WHERE s.guid = gone.guid
)
SELECT count(*) FROM gone
