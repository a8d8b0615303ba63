-- expire_mark: makes tombstones of closed jobs whose time has passed (J7), before anything of them is removed. Their expires_at stays until nothing is left. A job stays while a job of its compensations is ordered or not closed: that one reads its record (3.5); OFFSET 0 keeps these look-ups by index. $1 limit. Returns their number.
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
