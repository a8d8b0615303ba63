-- due: rows that are due and not held, oldest first, without locking them (T2); of jobs that are not there (yet), too; those of quarantined jobs stay where they are (C16). $1 limit.
SELECT d.job, d.guid, d.kind, d.topic, d.publication, d.turn, d.turn_sent, d.published_at, d.next_at, (SELECT micros())
FROM dispatches d
LEFT JOIN jobs j ON j.id = d.job
WHERE d.held IS NULL AND d.next_at IS NOT NULL AND d.next_at <= (SELECT micros()) AND j.state IS DISTINCT FROM 'quarantined'
ORDER BY d.next_at
LIMIT $1::int8
