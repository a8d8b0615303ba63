-- name: due
-- lists rows that are due and not held, oldest first, without a lock (T2). They include rows of jobs that do not
-- exist (yet), but none of quarantined jobs (C16). $1 limit. Each row, or one row of its own, has the time, when
-- the next row is due or a request is late (null for never), and whether a request may be late already.
SELECT c.now, least((SELECT min(n.next_at) FROM dispatches n WHERE n.held IS NULL AND n.next_at IS NOT NULL AND n.next_at > c.now),
                    (SELECT min(n.within_at) FROM dispatches n WHERE n.within_at IS NOT NULL AND n.within_at > c.now)),
       EXISTS (SELECT FROM dispatches n WHERE n.within_at IS NOT NULL AND n.within_at <= c.now AND n.kind = 'request'),
       d.job, d.guid, d.kind, d.topic, d.publication, d.turn, d.turn_sent, d.published_at, d.runs
FROM (SELECT micros() AS now OFFSET 0) c
LEFT JOIN LATERAL (
    SELECT d.*
    FROM dispatches d
    LEFT JOIN jobs j ON j.id = d.job
    WHERE d.held IS NULL AND d.next_at IS NOT NULL AND d.next_at <= c.now AND j.state IS DISTINCT FROM 'quarantined'
    ORDER BY d.next_at
    LIMIT $1::int8
) d ON true

-- name: claim
-- takes due rows for sending, by test-and-set on publication and turn; it skips rows that others have locked (T2).
-- $1 jobs, $2 GUIDs, $3 publications, $4 turns, $5 send, $6 microseconds until due again, $7 sessions that send, 0
-- for none, $8 whether the bus has refused this publication: such a row need not be due, and nobody has sent it. Returns the rows to send, with what publishing needs of their jobs, null if a job does not exist. The
-- conditions fit no index on due rows, so that each row is looked up by its key, however many are due.
WITH w AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[], $5::bool[], $6::int8[], $7::int8[], $8::bool[])
        AS w (job, guid, publication, turn, send, again, session, refused)
), won AS MATERIALIZED (
    SELECT d.job, d.guid, w.send, w.again, w.session, w.refused, (SELECT micros()) AS now
    FROM w JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
    WHERE d.publication = w.publication AND d.turn = w.turn AND coalesce(d.held, '') = ''
      AND (d.next_at - (SELECT micros()) <= 0 OR w.refused AND d.next_at IS NOT NULL AND d.holder IS NULL)
    FOR UPDATE OF d SKIP LOCKED
), d AS (
    UPDATE dispatches d
    SET rev = d.rev + 1,
        publication = d.publication + CASE WHEN won.send THEN 1 ELSE 0 END,
        turn_sent = CASE WHEN won.send THEN d.turn WHEN won.refused THEN -1 ELSE d.turn_sent END,
        published_at = CASE WHEN won.send THEN won.now ELSE d.published_at END,
        session = CASE WHEN won.send AND d.holder IS NULL THEN nullif(won.session, 0) ELSE d.session END,
        next_at = won.now + won.again
    FROM won
    WHERE d.job = won.job AND d.guid = won.guid
    RETURNING d.*, won.send
)
SELECT {row:d}, j.key, j.generation, j.flow_name, j.flow_version, j.flow_digest, j.trace, j.origin
FROM d LEFT JOIN jobs j ON j.id = d.job AND j.state <> 'expired'
WHERE d.send

-- name: late
-- lists requests of open jobs that are past their time (E9), or kept signals (1.11), the oldest first, without a lock.
-- $1 kind, $2 limit.
SELECT d.job, d.guid
FROM dispatches d
WHERE d.within_at IS NOT NULL AND d.within_at <= (SELECT micros()) AND d.kind = $1::text
  AND CASE d.kind WHEN 'request' THEN (SELECT j.state FROM jobs j WHERE j.id = d.job) = 'open' ELSE d.held = 'kept' END
ORDER BY d.within_at
LIMIT $2::int8

-- name: publications
-- finds the publications of requests that are not held. $1 jobs, $2 GUIDs. Returns their places from 1, and the
-- publication; no row for any other.
SELECT w.place, d.publication
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, guid, place)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
WHERE d.kind = 'request' AND d.held IS NULL
