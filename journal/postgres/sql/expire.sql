-- name: expire_mark
-- turns closed jobs whose time has passed into tombstones (J7). A job without open rows gets the tombstone's time
-- at once; another gets it when expire_cleared finds these rows removed. A job stays while a job of its
-- compensations, which reads its record (3.5), is ordered or not closed; while the last job that resumes it is not
-- closed, or can be resumed itself; while a job that goes on from an entry of it is not closed. OFFSET 0 keeps these
-- look-ups on their indexes. $1 limit, $2 how long a tombstone stays. Returns their number.
WITH late AS MATERIALIZED (
    SELECT j.id
    FROM jobs j
    WHERE j.expires_at <= (SELECT micros()) AND j.state IN ('completed', 'failed', 'interrupted')
      AND NOT EXISTS (SELECT FROM dispatches d WHERE d.sender = j.id AND d.undo OFFSET 0)
      AND NOT EXISTS (SELECT FROM jobs u WHERE u.parent_job = j.id AND u.flow_name = 'quipu_undo' AND u.state IN ('open', 'quarantined') OFFSET 0)
      AND (j.next IS NULL
           OR NOT EXISTS (SELECT FROM jobs x WHERE x.key = j.key AND x.next IS NULL AND x.root = coalesce(j.root, j.id)
                              AND x.state NOT IN ('completed', 'expired') OFFSET 0))
      AND NOT EXISTS (SELECT FROM jobs x WHERE x.forked = j.id AND x.state IN ('open', 'quarantined') OFFSET 0)
    ORDER BY j.expires_at
    LIMIT $1::int8
    FOR UPDATE OF j SKIP LOCKED
), marked AS (
    UPDATE jobs j
    SET state = 'expired', expires_at = CASE WHEN {open j} THEN j.expires_at ELSE micros() + $2::int8 END
    FROM late WHERE j.id = late.id
    RETURNING 1
)
SELECT count(*) FROM marked

-- name: expire_take
-- lists tombstones that have open rows, locked, skipping locked ones. $1 limit. Returns the id of each.
SELECT j.id FROM jobs j
WHERE j.expires_at <= (SELECT micros()) AND j.state = 'expired' AND {open j}
ORDER BY j.expires_at
LIMIT $1::int8
FOR UPDATE SKIP LOCKED

-- name: expire_open
-- removes the open rows of tombstones. The history goes with its partition (W11). $1 jobs, $2 limit for each table.
-- Returns the number of rows of the table that lost the most.
WITH w AS (
    DELETE FROM waits WHERE ctid = ANY (ARRAY(SELECT ctid FROM waits WHERE job = ANY ($1::uuid[]) LIMIT $2::int8)) RETURNING 1
), d AS (
    DELETE FROM dispatches WHERE ctid = ANY (ARRAY(SELECT ctid FROM dispatches WHERE job = ANY ($1::uuid[]) LIMIT $2::int8)) RETURNING 1
), l AS (
    DELETE FROM dead_letters WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letters WHERE job = ANY ($1::uuid[]) LIMIT $2::int8)) RETURNING 1
)
SELECT greatest((SELECT count(*) FROM w), (SELECT count(*) FROM d), (SELECT count(*) FROM l))

-- name: expire_strays
-- removes the oldest stray dead letters, so that at most the newest $1 stay, and of these at most $2 bytes; and counts
-- them (S15). $3 limit. Returns their number.
WITH newest AS MATERIALIZED (
    SELECT id, stray FROM dead_letters WHERE stray IS NOT NULL AND id > 0 ORDER BY id DESC LIMIT $1::int8 + 1
), beyond AS MATERIALIZED (
    SELECT max(id) AS id
    FROM (SELECT id, row_number() OVER w AS n, sum(stray) OVER w AS bytes FROM newest WINDOW w AS (ORDER BY id DESC)) AS s
    WHERE n > $1::int8 OR bytes > $2::int8
), gone AS (
    DELETE FROM dead_letters
    WHERE stray IS NOT NULL
      AND id = ANY (ARRAY(SELECT l.id FROM dead_letters l
                          WHERE l.stray IS NOT NULL AND l.id <= (SELECT id FROM beyond) ORDER BY l.id LIMIT $3::int8))
    RETURNING 1
), counted AS (
    UPDATE space s SET dropped = least(s.dropped + w.n, 1000000000000000) FROM (SELECT count(*) AS n FROM gone) AS w WHERE s.single AND w.n > 0
)
SELECT count(*) FROM gone

-- name: expire_cleared
-- sets the time of tombstones without open rows. $1 ids, $2 how long a tombstone stays.
UPDATE jobs j SET expires_at = micros() + $2::int8 WHERE j.id = ANY ($1::uuid[]) AND j.state = 'expired' AND NOT {open j}

-- name: expire_floor
-- raises the floor of generations to those of the tombstones that expire_end then ends, so that no key gets a generation
-- twice (W11, C8). It is a statement of its own since retention may remove nothing above the floor (S8). $1 limit, $2
-- jobs of a partition.
WITH over AS MATERIALIZED (
    SELECT j.generation, EXISTS (SELECT FROM partitions p WHERE p.p = j.n / $2::int8) AS stays
    FROM jobs j
    WHERE j.expires_at <= (SELECT micros()) AND j.state = 'expired' AND NOT {open j}
    ORDER BY j.expires_at
    LIMIT $1::int8
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE space s SET floor = w.generation
FROM (SELECT max(generation) AS generation FROM over WHERE NOT stays AND generation <= 1000000000000) AS w
WHERE s.single AND s.floor < w.generation

-- name: expire_end
-- ends tombstones whose time has passed and whose generation is not above the floor (W11, C8). A tombstone whose history
-- still exists, or whose generation no floor can have, stays for another $2. $1 limit, $2 how long a tombstone stays, $3
-- jobs of a partition. Returns the number of both.
WITH over AS MATERIALIZED (
    SELECT j.id, j.generation > 1000000000000 OR EXISTS (SELECT FROM partitions p WHERE p.p = j.n / $3::int8) AS stays
    FROM jobs j
    WHERE j.expires_at <= (SELECT micros()) AND j.state = 'expired' AND NOT {open j}
      AND (j.generation <= (SELECT s.floor FROM space s WHERE s.single) OR j.generation > 1000000000000
           OR EXISTS (SELECT FROM partitions p WHERE p.p = j.n / $3::int8))
    ORDER BY j.expires_at
    LIMIT $1::int8
    FOR UPDATE OF j SKIP LOCKED
), stays AS (
    UPDATE jobs j SET expires_at = micros() + $2::int8 FROM over w WHERE j.id = w.id AND w.stays
), ends AS (
    DELETE FROM jobs j USING over w WHERE j.id = w.id AND NOT w.stays
)
SELECT count(*) FROM over

-- name: prune
-- deletes markers older than $1 microseconds (J4), and records older than $2 of signals that are not kept; at most
-- $3 of each. Returns their number.
WITH markers AS MATERIALIZED (
    SELECT session, seq, login FROM batches WHERE at < (SELECT micros() - $1::int8) ORDER BY at LIMIT $3::int8
), records AS MATERIALIZED (
    SELECT guid, job FROM signals WHERE at < (SELECT micros() - $2::int8) AND state <> 'kept' ORDER BY at LIMIT $3::int8
), m AS (
    DELETE FROM batches b USING markers WHERE b.session = markers.session AND b.seq = markers.seq AND b.login = markers.login RETURNING 1
), s AS (
    DELETE FROM signals USING records WHERE signals.guid = records.guid AND signals.job = records.job RETURNING 1
)
SELECT (SELECT count(*) FROM m) + (SELECT count(*) FROM s)
