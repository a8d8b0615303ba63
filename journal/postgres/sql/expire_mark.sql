-- expire_mark: makes tombstones of closed jobs whose time has passed (J7), before anything of them is removed. Their expires_at stays until nothing is left. $1 limit. Returns their number.
WITH late AS MATERIALIZED (
    SELECT j.id
    FROM jobs j
    WHERE j.expires_at <= (SELECT micros()) AND j.state IN ('completed', 'failed', 'interrupted')
    ORDER BY j.expires_at
    LIMIT $1::int8
    FOR UPDATE SKIP LOCKED
), marked AS (
    UPDATE jobs j SET state = 'expired' FROM late WHERE j.id = late.id RETURNING 1
)
SELECT count(*) FROM marked
