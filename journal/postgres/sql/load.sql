-- name: load_lock
-- locks jobs in the order of their ids, waiting for each (J3). Nothing changes a tombstone: it needs no lock. $1 ids.
SELECT FROM jobs WHERE id = ANY ($1::uuid[]) AND state <> 'expired' ORDER BY id FOR NO KEY UPDATE

-- name: load_jobs_skip
-- locks the jobs that no other transaction has locked, in the order of their ids, and reads their headers (J2, J3).
-- The time and the number come after each header. $1 ids.
SELECT {job}, (SELECT micros()), n FROM jobs WHERE id = ANY ($1::uuid[]) AND state <> 'expired' ORDER BY id FOR NO KEY UPDATE SKIP LOCKED

-- name: load_jobs
-- reads the headers of jobs, with their numbers (J2). $1 ids.
SELECT {job}, n
FROM jobs WHERE id = ANY ($1::uuid[])

-- name: load_instances
-- reads activity ledgers by primary key (J2). $1 jobs, $2 activities, $3 address keys, $4 and $5 their span. Returns
-- the place in the arrays from 1, and the row.
SELECT w.place, {instance:i}
FROM (SELECT w.*, j.n FROM unnest($1::uuid[], $2::text[], $3::uuid[]) WITH ORDINALITY AS w (job, activity, dad, place) JOIN jobs j ON j.id = w.job OFFSET 0) AS w
CROSS JOIN LATERAL (SELECT * FROM instances i WHERE i.n = w.n AND i.activity = w.activity AND i.dad = w.dad AND {i within 4} OFFSET 0) AS i

-- name: load_receipts
-- reads receipts by primary key. While steps are open it also reads the entry that accepted the message, except for
-- a start (1.7). $1 jobs, $2 GUIDs, $3 and $4 their span. Returns the place in the arrays from 1, and the row.
SELECT w.place, r.ledger, r.verdict, r.seq,
       CASE WHEN r.verdict = 'handled' AND r.guid <> w.job
                 AND NOT (r.ledger / 1000000000 % 10 = 1
                          AND (r.ledger / 100000000000 = 0 OR r.ledger / 100000000 % 10 = 1))
            THEN (SELECT {sealed e} FROM entries e
                  WHERE e.n = r.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = r.seq AND {e within 3})
       END
FROM (SELECT w.*, j.n FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, guid, place) JOIN jobs j ON j.id = w.job OFFSET 0) AS w
CROSS JOIN LATERAL (SELECT * FROM receipts r WHERE r.n = w.n AND r.guid = w.guid AND {r within 3} OFFSET 0) AS r

-- name: load_rows
-- reads dispatch rows by primary key, locked (J8), but only of jobs that this transaction has locked. Their jobs
-- are locked again first, which costs nothing; other jobs are skipped, so that it never waits for a row of a job
-- that was left out (J3). $1 jobs, $2 GUIDs. Returns the place in the arrays from 1, and the row.
SELECT w.place, {row:d}
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, guid, place)
JOIN jobs j ON j.id = w.job
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
FOR NO KEY UPDATE OF j SKIP LOCKED
FOR UPDATE OF d

-- name: load_results
-- reads the entries that hold outputs (J7). $1 jobs, $2 activities, $3 address keys, $4 and $5 their span. Returns
-- the place in the arrays from 1, and the body, null without a result. The subquery fixes the join order: an
-- instance, then its one entry.
SELECT w.place,
       (SELECT {sealed e} FROM entries e
        WHERE e.n = i.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = i.result_seq AND {e within 4})
FROM (SELECT w.*, j.n FROM unnest($1::uuid[], $2::text[], $3::uuid[]) WITH ORDINALITY AS w (job, activity, dad, place) JOIN jobs j ON j.id = w.job OFFSET 0) AS w
CROSS JOIN LATERAL (SELECT * FROM instances i WHERE i.n = w.n AND i.activity = w.activity AND i.dad = w.dad AND {i within 4} OFFSET 0) AS i
WHERE i.result_seq > 0

-- name: load_payloads
-- reads outputs that are stored beside their entries (E6). $1 jobs, $2 digests. Returns the place in the arrays
-- from 1, and the bytes.
SELECT w.place, p.body
FROM (SELECT w.*, j.n FROM unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY AS w (job, digest, place) JOIN jobs j ON j.id = w.job AND j.state <> 'expired' OFFSET 0) AS w
JOIN payloads p ON p.n = w.n AND p.digest = w.digest

-- name: load_unfinished
-- says whether requests have a call outside that started and has no outcome (E4). $1 jobs, $2 requests, $3 and $4
-- their span. Returns the place in the arrays from 1, and the answer.
SELECT w.place, EXISTS (SELECT FROM effects e WHERE e.n = j.n AND e.request = w.request AND e.state = 'started' AND e.class <> 'undo' AND {e within 3})
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, request, place)
JOIN jobs j ON j.id = w.job

-- name: load_effects
-- reads all effects of requests, each request's in the order of the first entries (3.3), none of tombstones. $1 jobs,
-- $2 requests. Returns the place in the arrays from 1, and the effect.
SELECT w.place, {effect:e}
FROM (SELECT w.*, j.n FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, request, place)
      JOIN jobs j ON j.id = w.job AND j.state <> 'expired' OFFSET 0) AS w
JOIN effects e ON e.n = w.n AND e.request = w.request
LEFT JOIN dispatches d ON d.job = w.job AND d.guid = w.request
ORDER BY w.place, e.seq

-- name: load_named_rows
-- reads dispatch rows by primary key, of any job or mailbox, locked (J8). $1 jobs, $2 GUIDs. Returns the place
-- in the arrays from 1, and the row.
SELECT w.place, {row:d}
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, guid, place)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
FOR UPDATE OF d

-- name: load_waits
-- reads open waits by primary key. $1 jobs, $2 GUIDs. Returns the place in the arrays from 1, and the wait.
SELECT a.place, {wait:w}
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS a (job, guid, place)
JOIN waits w ON w.job = a.job AND w.guid = a.guid

-- name: load_latest
-- reads the entry with the latest result of an activity, at any address (5.1). $1 jobs, $2 activities. Returns the
-- place in the arrays from 1, and the body, null without a result.
SELECT w.place,
       (SELECT {sealed e} FROM entries e
        WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000'
          AND e.seq = (SELECT max(i.result_seq) FROM instances i WHERE i.n = j.n AND i.activity = w.activity))
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS w (job, activity, place)
JOIN jobs j ON j.id = w.job

-- name: load_keys
-- finds the jobs that have the keys, without tombstones. $1 keys. Returns the place in the array from 1, and the
-- id.
SELECT w.place, j.id
FROM unnest($1::text[]) WITH ORDINALITY AS w (key, place)
CROSS JOIN LATERAL (SELECT * FROM jobs j WHERE j.key = w.key AND j.next IS NULL AND j.state <> 'expired' OFFSET 0) AS j

-- name: load_closes
-- reads the entries that closed jobs (C15). $1 jobs. Returns the place in the array from 1, and the body, null while
-- the job is open. The subquery fixes the join order: a job, then its one entry.
SELECT w.place,
       (SELECT {sealed e} FROM entries e
        WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = j.closed_seq)
FROM unnest($1::uuid[]) WITH ORDINALITY AS w (job, place)
JOIN jobs j ON j.id = w.job

-- name: load_row_locks
-- locks the rows that load_all_rows reads, so that a wait for a worker's lock does not hold up mailboxes. $1 jobs.
WITH own AS MATERIALIZED (
    SELECT FROM dispatches WHERE job = ANY ($1::uuid[]) ORDER BY job, guid FOR UPDATE
), sent AS MATERIALIZED (
    SELECT FROM dispatches WHERE sender = ANY ($1::uuid[]) ORDER BY job, guid FOR UPDATE
)
SELECT (SELECT count(*) FROM own) + (SELECT count(*) FROM sent)

-- name: load_wait_locks
-- locks mailboxes in which jobs have repeating waits, in the order of their lock keys, so that these waits do not
-- change before the transaction writes (J3). $1 jobs, $2 most mailboxes.
SELECT count(pg_advisory_xact_lock(k)) FROM (
    SELECT DISTINCT ('x' || left(replace(w.mailbox::text, '-', ''), 16))::bit(64)::int8 AS k
    FROM waits w
    WHERE w.job = ANY ($1::uuid[]) AND w.repeat
    ORDER BY k
    LIMIT $2::int8
) AS w

-- name: load_all_waits
-- reads all open waits of jobs (C15). $1 jobs.
SELECT {wait:w}
FROM waits w WHERE w.job = ANY ($1::uuid[])

-- name: load_all_rows
-- reads, locked, all dispatch rows of jobs that this transaction has locked, and the starts of children that they
-- await (C15, J8). $1 jobs.
WITH own AS MATERIALIZED (
    SELECT * FROM dispatches WHERE job = ANY ($1::uuid[]) ORDER BY job, guid FOR UPDATE
), sent AS MATERIALIZED (
    SELECT * FROM dispatches WHERE sender = ANY ($1::uuid[]) ORDER BY job, guid FOR UPDATE
)
SELECT {row:d}
FROM (SELECT * FROM own UNION ALL SELECT * FROM sent) AS d

-- name: load_children
-- reads the instances of jobs that have a child (C15). $1 jobs.
SELECT j.id, i.activity, i.dad_text, {instance:i}
FROM jobs j JOIN instances i ON i.n = j.n
WHERE j.id = ANY ($1::uuid[]) AND i.child IS NOT NULL

-- name: load_past
-- reads instances, or elements, of the generations that jobs resume, the latest first, and of the jobs that forks
-- go on from, up to an entry. $1 jobs, $2 activities, $3 address keys, $4 these jobs or null, $5 the entries. Returns
-- the place in the arrays from 1, the generation with its job and its origin, the entry with the result, null without
-- one, and whether it is of such a job.
SELECT w.place, a.id, a.generation, a.origin, i.result_seq,
       (SELECT {sealed e} FROM entries e
        WHERE e.n = i.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = i.result_seq),
       a.forked
FROM (SELECT w.*, j.key, j.root, j.generation
      FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::int8[]) WITH ORDINALITY
          AS w (job, activity, dad, forked, cut, place)
      JOIN jobs j ON j.id = w.job OFFSET 0) AS w
CROSS JOIN LATERAL (
    SELECT p.id, p.n, p.generation, p.origin, 9223372036854775807 AS cut, false AS forked
    FROM jobs p
    WHERE p.key = w.key AND p.next IS NOT NULL AND p.generation < w.generation AND coalesce(p.root, p.id) = w.root AND p.state <> 'expired'
    UNION ALL
    SELECT p.id, p.n, p.generation, p.origin, w.cut, true FROM jobs p WHERE p.id = w.forked AND p.state <> 'expired'
) AS a
LEFT JOIN LATERAL (SELECT * FROM instances i
                   WHERE i.n = a.n AND i.activity = w.activity AND i.dad = w.dad AND i.result_seq BETWEEN 1 AND a.cut OFFSET 0) AS i ON true
ORDER BY w.place, a.forked, a.generation DESC

-- name: load_past_pauses
-- reads resolved waits of functions as load_past reads instances (E12). $1 jobs, $2 kinds, $3 names, $4 positions,
-- $5 activities, $6 address keys, $7 jobs that forks go on from or null, $8 the entries. Returns the place in the
-- arrays from 1, the generation, the seq and the entry, the request, the Leg1 of its list (null for none), whether its
-- compensations have run or will run, the job of the generation, and whether it is one that a fork goes on from.
SELECT w.place, a.generation, k.seq,
       (SELECT {sealed e} FROM entries e WHERE e.n = k.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = k.seq),
       k.request, CASE WHEN i.count > 0 THEN i.leg1 END, {undone a k.request}, a.id, a.forked
FROM (SELECT w.*, j.key, j.root, j.generation
      FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::uuid[], $8::int8[]) WITH ORDINALITY
          AS w (job, kind, name, position, activity, dad, forked, cut, place)
      JOIN jobs j ON j.id = w.job OFFSET 0) AS w
CROSS JOIN LATERAL (
    SELECT p.id, p.n, p.generation, 9223372036854775807 AS cut, false AS forked
    FROM jobs p
    WHERE p.key = w.key AND p.next IS NOT NULL AND p.generation < w.generation AND coalesce(p.root, p.id) = w.root AND p.state <> 'expired'
    UNION ALL
    SELECT p.id, p.n, p.generation, w.cut, true FROM jobs p WHERE p.id = w.forked AND p.state <> 'expired'
) AS a
CROSS JOIN LATERAL (SELECT * FROM resolved_waits k
                    WHERE k.n = a.n AND k.kind = w.kind AND k.name = w.name AND k.position = w.position AND k.seq <= a.cut OFFSET 0) AS k
LEFT JOIN LATERAL (SELECT * FROM instances i WHERE i.n = a.n AND i.activity = w.activity AND i.dad = w.dad OFFSET 0) AS i ON true
ORDER BY w.place, a.forked, a.generation DESC, k.seq

-- name: load_ends
-- reads the last generations of children that have completed. $1 children. Returns the place in the array from 1,
-- the generation, the seq and the entry of its completion tasks, and the job.
SELECT w.place, l.generation, l.tasks_seq,
       (SELECT {sealed e} FROM entries e WHERE e.n = l.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = l.tasks_seq), l.id
FROM unnest($1::uuid[]) WITH ORDINALITY AS w (job, place)
JOIN jobs c ON c.id = w.job AND c.state <> 'expired'
CROSS JOIN LATERAL (SELECT * FROM jobs l WHERE l.key = c.key AND l.next IS NULL AND coalesce(l.root, l.id) = coalesce(c.root, c.id) OFFSET 0) AS l
WHERE l.state = 'completed' AND l.tasks_seq IS NOT NULL
