-- name: schema_version
-- the version and name of the space, read before anything else.
SELECT version, name FROM space

-- name: epoch
-- the epoch of the space (T4).
SELECT epoch FROM space

-- name: preflight
-- the settings on which the promise rests (4.4).
SELECT current_setting('server_version_num')::int8, current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('synchronous_commit'), pg_is_in_recovery(), current_setting('data_checksums'),
       current_setting('server_version')

-- name: resolve_terminate
-- ends the backend whose commit has an unknown outcome, so that nothing waits for it (J4). $1 backend pid, $2 its
-- application name.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1::int8 AND application_name = $2::text

-- name: resolve_marker
-- waits for the batch of this marker and takes its place if it was not committed (J4). $1 session, $2 seq.
INSERT INTO batches (session, seq, at, taken) VALUES ($1::uuid, $2::int8, micros(), true) ON CONFLICT DO NOTHING

-- name: resolve_read
-- whose the marker is: taken means that the batch was not committed (J4). $1 session, $2 seq.
SELECT taken FROM batches WHERE session = $1::uuid AND seq = $2::int8

-- name: partitions_missing
-- which partitions are to be made (W10): that of the last number that was drawn, and so many behind it, as far as they
-- are not there. $1 jobs of a partition, $2 how many behind it. Returns each number, and whether this login may act as the owner of the tables,
-- and who that is.
SELECT p, pg_has_role(t.relowner, 'MEMBER'), quote_ident(pg_get_userbyid(t.relowner))
FROM (SELECT coalesce(pg_sequence_last_value('jobs_n_seq'), 0) / $1::int8 AS newest) AS s
CROSS JOIN LATERAL generate_series(s.newest, s.newest + $2::int8) AS g (p)
JOIN pg_class t ON t.oid = to_regclass('entries')
WHERE to_regclass('entries_' || p) IS NULL
ORDER BY p
