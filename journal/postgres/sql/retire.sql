-- name: retire_lock
-- takes the lock of who drops partitions, until the session gives it back, if nobody has it. $1 what is locked.
SELECT pg_try_advisory_lock(hashtextextended($1::text, 0))

-- name: retire_unlock
-- gives the lock back. $1 what is locked.
SELECT pg_advisory_unlock(hashtextextended($1::text, 0))

-- name: retire_look
-- the partitions in which no job begins any more, and whoever began one has committed, the one that was closed first
-- before the others: each with the number below which no job of it is left but as a tombstone, when it was closed, and
-- the time. $1 partitions of a class, $2 how long ago it was closed at least.
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
-- the first jobs of a partition that are more than a tombstone. $1 from which n on, $2 up to which, $3 limit.
SELECT j.id, j.n FROM jobs j WHERE j.n >= $1::int8 AND j.n < $2::int8 AND j.state <> 'expired' ORDER BY j.n LIMIT $3::int8

-- name: retire_seen
-- notes below which number no job of a partition is left but as a tombstone. $1 partition, $2 n.
UPDATE partitions SET live = $2::int8 WHERE p = $1::int8

-- name: retire_job
-- locks a job that is to be moved, if nobody has it (J3), and reads its head. $1 id, $2 its n.
SELECT {job} FROM jobs WHERE id = $1::uuid AND n = $2::int8 AND state <> 'expired' FOR UPDATE SKIP LOCKED

-- name: retire_next
-- a new number of a class. $1 its sequence.
SELECT nextval($1::text::regclass)

-- name: retire_jobs
-- jobs of a partition, by their numbers, of keys used again too, each with the digest of its flow version as it is
-- deployed, null for none. Each table gives no more than a page, so that only that is sorted. $1 after which n, $2 up to
-- which, $3 limit.
SELECT j.id, j.key, j.generation, j.head_seq, j.head_hash, j.n, f.digest
FROM (
    (SELECT id, key, generation, head_seq, head_hash, n, flow_name, flow_version FROM jobs WHERE n > $1::int8 AND n < $2::int8 ORDER BY n LIMIT $3::int8)
    UNION ALL
    (SELECT id, key, generation, head_seq, head_hash, n, flow_name, flow_version FROM tombstones WHERE n > $1::int8 AND n < $2::int8 ORDER BY n LIMIT $3::int8)
) AS j
LEFT JOIN flows f ON f.name = j.flow_name AND f.version = j.flow_version
ORDER BY j.n
LIMIT $3::int8

-- name: retire_chains
-- all entries of a job, the main chain first, then the others, each by seq. $1 n.
SELECT chain, seq, body, hash FROM entries WHERE n = $1::int8 ORDER BY chain, seq

-- name: retire_tables
-- what is there of a partition: each table, in their order, and whether it is attached, or being detached. $1 tables, $2
-- partition.
SELECT w.name || '_' || $2::int8, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false), w.name
FROM unnest($1::text[]) WITH ORDINALITY AS w (name, place)
JOIN pg_class c ON c.oid = to_regclass(w.name || '_' || $2::int8)
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
ORDER BY w.place

-- name: retire_done
-- forgets a partition. $1 p.
DELETE FROM partitions WHERE p = $1::int8
