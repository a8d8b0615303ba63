-- expire_take: tombstones of which more is left, locked, those of others skipped. $1 limit. Returns their ids.
WITH current AS MATERIALIZED (
    SELECT j.id
    FROM jobs j
    WHERE j.expires_at <= (SELECT micros()) AND j.state = 'expired'
    ORDER BY j.expires_at
    LIMIT $1::int8
    FOR UPDATE SKIP LOCKED
), replaced AS MATERIALIZED (
    SELECT t.id FROM tombs t WHERE t.expires_at IS NOT NULL ORDER BY t.expires_at LIMIT $1::int8 FOR UPDATE SKIP LOCKED
)
SELECT id FROM current UNION ALL SELECT id FROM replaced LIMIT $1::int8
