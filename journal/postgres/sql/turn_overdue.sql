-- turn_overdue: turns requests that nobody answered within their time into answers of their own (E9): due now, to the engine, released. Where compensations are registered the input stays, and so does the end of the lease, which they wait for (3.5). $1 limit, $2 the answer. Returns their number.
WITH late AS MATERIALIZED (
    SELECT d.job, d.guid
    FROM dispatches d
    WHERE d.within_at IS NOT NULL AND d.within_at <= (SELECT micros()) AND d.kind = 'request'
      AND (SELECT j.state FROM jobs j WHERE j.id = d.job) = 'open'
    ORDER BY d.within_at
    LIMIT $1::int8
    FOR UPDATE OF d SKIP LOCKED
), turned AS (
    UPDATE dispatches d
    SET kind = 'answer', input = CASE WHEN d.undo THEN d.body END, body = $2::bytea, held = NULL, next_at = micros(), turn_sent = 0, within_at = NULL,
        holder = NULL, lease_until = CASE WHEN d.undo THEN d.lease_until END
    FROM late
    WHERE d.job = late.job AND d.guid = late.guid
    RETURNING 1
)
SELECT count(*) FROM turned
