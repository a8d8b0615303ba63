-- name: retire_look
-- lists the partitions in which no new job begins and all inceptions have committed, the one that closed first
-- coming first. Returns for each the number below which it has only tombstones, when it closed, and the time. $1
-- partitions of a class, $2 how long it must have been closed.
SELECT p.p, p.live, next.opened, micros()
FROM partitions p
CROSS JOIN LATERAL (
    SELECT o.opened, o.opener FROM partitions o
    WHERE o.p > p.p AND o.p / $1::int8 = p.p / $1::int8 AND o.opened IS NOT NULL
    ORDER BY o.p LIMIT 1
) AS next
WHERE next.opened <= (SELECT micros() - $2::int8) AND next.opener < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY next.opened, p.p

-- name: retire_live
-- lists the first jobs of a partition that are not tombstones. $1 from which n on, $2 below which n, $3 limit.
SELECT j.id, j.n FROM jobs j WHERE j.n >= $1::int8 AND j.n < $2::int8 AND j.state <> 'expired' ORDER BY j.n LIMIT $3::int8

-- name: retire_seen
-- records the number below which a partition has only tombstones. $1 partition, $2 n.
UPDATE partitions SET live = $2::int8 WHERE p = $1::int8

-- name: retire_job
-- locks a job that is to be moved, unless another transaction has locked it (J3), and reads its header. $1 id, $2
-- its n.
SELECT {job} FROM jobs WHERE id = $1::uuid AND n = $2::int8 AND state <> 'expired' FOR UPDATE SKIP LOCKED

-- name: retire_next
-- draws a new number of a class. $1 its sequence.
SELECT nextval($1::text::regclass)

-- name: retire_jobs
-- lists jobs of a partition by number, each with the digest of its deployed flow version, null for none. $1 after
-- which n, $2 below which n, $3 limit.
SELECT j.id, j.key, j.generation, j.head_seq, j.head_hash, j.n, f.digest, j.flow_name, j.flow_version
FROM jobs j LEFT JOIN flows f ON f.name = j.flow_name AND f.version = j.flow_version
WHERE j.n > $1::int8 AND j.n < $2::int8
ORDER BY j.n
LIMIT $3::int8

-- name: retire_tables
-- lists the tables of a partition that exist, in the given order, and whether each is attached or is being
-- detached. $1 tables, $2 partition.
SELECT w.name || '_' || $2::int8, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false), w.name
FROM unnest($1::text[]) WITH ORDINALITY AS w (name, place)
JOIN pg_class c ON c.oid = to_regclass(w.name || '_' || $2::int8)
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
ORDER BY w.place

-- name: retire_done
-- forgets a partition. $1 p.
DELETE FROM partitions WHERE p = $1::int8
