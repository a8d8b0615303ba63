-- name: chains_lock
-- locks dispatch rows, each of which is the lock of its effect chain (J8), in the order of the arrays, waiting for
-- each. Reads what effects need of them and of their jobs, and whether the job is in doubt (S13). $1 jobs, $2 GUIDs.
SELECT {chain:d}, j.generation, j.state, j.trace, (SELECT s.doubt > 0 FROM space s WHERE s.single) AND in_doubt(j.id)
FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
JOIN jobs j ON j.id = d.job
FOR UPDATE OF d

-- name: chains_lock_skip
-- is chains_lock for rows that no other transaction has locked: a batch of effects does not wait (J8). $1 jobs, $2
-- GUIDs.
SELECT {chain:d}, j.generation, j.state, j.trace, (SELECT s.doubt > 0 FROM space s WHERE s.single) AND in_doubt(j.id)
FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
JOIN jobs j ON j.id = d.job
FOR UPDATE OF d SKIP LOCKED

-- name: chains_put
-- writes what effects change in dispatch rows (J8), which this transaction has locked or whose revs tell that they
-- are as they were decided on (W6). A row that is gone or has changed, or a job in another state, means: decide
-- again. $2 the revs that were read, $3 the new ones, $4 the states of the jobs.
WITH moved AS (
    UPDATE dispatches d
    SET {moved set w}, rev = w.rev
    FROM unnest({moved param 1}, $2::int8[], $3::int8[], $4::text[]) AS w ({moved}, was, rev, state)
    WHERE d.job = w.job AND d.guid = w.guid AND d.rev = w.was AND (SELECT j.state FROM jobs j WHERE j.id = w.job) = w.state
    RETURNING 1
)
SELECT {changed rows 1} FROM moved

-- name: chain_head
-- reads the last entry of a chain whose row has gone, under the job's lock (J8). $1 job, $2 chain.
SELECT seq, hash FROM entries WHERE n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid) AND chain = $2::uuid ORDER BY seq DESC LIMIT 1

-- name: effects_read
-- reads effects of requests by their keys (E1), none of tombstones. live says whether the run that started the effect
-- still has the lease. $1 jobs, $2 requests, $3 keys, $4 and $5 the span of the jobs. Returns for each key its place in
-- the arrays from 1, the effect, if it is there, its request, and the job's n. Effects are missing if that n is not in
-- the span. Each key is looked up by itself: a plan of a time when the table was empty or unknown would read all of it.
SELECT w.place, {effect:e}, e.request, w.n
FROM (SELECT w.*, j.n FROM unnest($1::uuid[], $2::uuid[], $3::bytea[]) WITH ORDINALITY AS w (job, request, key, place)
      JOIN jobs j ON j.id = w.job AND j.state <> 'expired' OFFSET 0) AS w
LEFT JOIN LATERAL (SELECT * FROM effects e WHERE e.n = w.n AND e.key = w.key AND e.request = w.request AND {e within 4} OFFSET 0) AS e ON true
LEFT JOIN LATERAL (SELECT * FROM dispatches d WHERE d.job = w.job AND d.guid = e.request OFFSET 0) AS d ON true

-- name: effects_past
-- reads effects by their keys in the generations that a job resumes, the latest first (E1): those of the topic that
-- the request has now. $1 jobs, $2 requests, $3 keys. Returns its place in the arrays from 1, the effect, its request, seq and end of the attempt, the generation,
-- whether compensations of the request have run or will run, and whether a job that runs them has not ended.
SELECT a.place, {effect:e}, e.request, e.seq, coalesce(e.until, 0), a.generation, {undone a e.request}, {undoing a e.request}
FROM (SELECT w.place, w.key, r.topic, a.id, a.n, a.generation
      FROM unnest($1::uuid[], $2::uuid[], $3::bytea[]) WITH ORDINALITY AS w (job, request, key, place)
      JOIN jobs j ON j.id = w.job
      JOIN dispatches r ON r.job = w.job AND r.guid = w.request
      JOIN jobs a ON a.key = j.key AND a.next IS NOT NULL AND a.generation < j.generation AND coalesce(a.root, a.id) = j.root AND a.state <> 'expired'
      OFFSET 0) AS a
JOIN LATERAL (SELECT * FROM effects e WHERE e.n = a.n AND e.key = a.key AND e.topic = a.topic OFFSET 0) AS e ON true
LEFT JOIN LATERAL (SELECT * FROM dispatches d WHERE d.job = a.id AND d.guid = e.request OFFSET 0) AS d ON true
ORDER BY a.place, a.generation DESC, e.request

-- name: effects_new
-- inserts effects (E1). A second one of a key is 23505. $1 jobs, $2 requests, $3 topics, '' for those of
-- the requests' rows, $4 seqs of the first entries, $5 turns, $6 ends of attempts, $7 the effects.
INSERT INTO effects (n, request, topic, seq, turn, until, {effect})
SELECT coalesce((SELECT j.n FROM jobs j WHERE j.id = w.job), CAST('quipu: lost job ' || w.job AS int8)),
       request, coalesce(nullif(topic, ''), (SELECT d.topic FROM dispatches d WHERE d.job = w.job AND d.guid = w.request), ''),
       seq, turn, until, {effect}
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::int8[], $5::int8[], $6::int8[], {effect param 7})
    AS w (job, request, topic, seq, turn, until, {effect})

-- name: effects_move
-- writes how effects that were started stand now. A result is written once (E5): an effect that has one is an error.
-- $1 jobs, $2 requests, $3 turns, $4 ends of attempts, $5 the effects, $6 and $7 the span of the jobs.
WITH put AS (
    UPDATE effects e
    SET state = w.state, result = w.result, error = w.error, fence = w.fence, holder = w.holder, turn = w.turn, until = w.until,
        vouched = w.vouched
    FROM (SELECT w.*, (SELECT j.n FROM jobs j WHERE j.id = w.job) AS n
          FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[], {effect param 5}) AS w (job, request, turn, until, {effect}) OFFSET 0) AS w
    WHERE e.n = w.n AND e.key = w.key AND e.request = w.request AND e.state = 'started' AND {e within 6}
    RETURNING 1
)
SELECT {changed effects 1} FROM put

-- name: effects_of_job
-- reads all effects of a job, for verification (V9). $1 job.
SELECT {effect:e}
FROM effects e
LEFT JOIN LATERAL (SELECT * FROM dispatches d WHERE d.job = $1::uuid AND d.guid = e.request OFFSET 0) AS d ON true
WHERE e.n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid)
ORDER BY e.request, e.seq

-- name: effects_placed
-- reads all effects of a job, each with its first entry, none of a tombstone. $1 job.
SELECT {effect:e},
       $1::uuid, e.request, (SELECT x.body FROM entries x WHERE x.n = e.n AND x.chain = e.request AND x.seq = e.seq)
FROM effects e
LEFT JOIN LATERAL (SELECT * FROM dispatches d WHERE d.job = $1::uuid AND d.guid = e.request OFFSET 0) AS d ON true
WHERE e.n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid AND j.state <> 'expired')
ORDER BY e.request, e.seq

-- name: effects_by_key
-- reads the effects of a key with their first entries, by job, none of tombstones. $1 key, $2 jobs of a partition.
-- The index groups the keys of 65536 consecutive jobs, so that new keys are written close together; each group is
-- searched for the key.
SELECT {effect:e},
       j.id, e.request, (SELECT x.body FROM entries x WHERE x.n = e.n AND x.chain = e.request AND x.seq = e.seq)
FROM partitions p
CROSS JOIN LATERAL (SELECT min(n) >> 16 AS first, max(n) >> 16 AS last FROM jobs WHERE n >= p.p * $2::int8 AND n < (p.p + 1) * $2::int8) AS r
CROSS JOIN LATERAL generate_series(r.first, r.last) AS g (part)
CROSS JOIN LATERAL (
    SELECT * FROM effects e WHERE e.n >> 16 = g.part AND e.key = $1::bytea AND e.n >= g.part << 16 AND e.n < (g.part + 1) << 16 OFFSET 0
) AS e
JOIN jobs j ON j.n = e.n AND j.state <> 'expired'
LEFT JOIN LATERAL (SELECT * FROM dispatches d WHERE d.job = j.id AND d.guid = e.request OFFSET 0) AS d ON true
ORDER BY j.id

-- name: effects_judged
-- records an operator's verdict on completed effects (3.3), by test-and-set: an effect was not done, which removes
-- its result, or its result is confirmed. $1 jobs, $2 requests, $3 keys, $4 states, $5 errors, $6 vouched.
WITH put AS (
    UPDATE effects e
    SET state = w.state, result = CASE WHEN w.state = 'completed' THEN e.result END, error = w.error, vouched = w.vouched
    FROM (SELECT w.*, j.n
          FROM unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::text[], $5::bytea[], $6::bool[]) AS w (job, request, key, state, error, vouched)
          JOIN jobs j ON j.id = w.job OFFSET 0) AS w
    WHERE e.n = w.n AND e.key = w.key AND e.request = w.request AND e.state = 'completed'
    RETURNING 1
)
SELECT {changed effects 1} FROM put

-- name: pauses_of_request
-- reads the resolved waits of a durable function, each with its entry, in the order of their seqs. After them comes
-- what its row still waits for, without seq and entry, from the same snapshot (E12). None of a tombstone. $1 job,
-- $2 request.
SELECT w.seq, w.kind, w.name, w.position,
       (SELECT {sealed e} FROM entries e WHERE e.n = w.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = w.seq), NULL::bytea
FROM resolved_waits w
WHERE w.n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid AND j.state <> 'expired') AND w.request = $2::uuid
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, d.pauses
FROM dispatches d
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND EXISTS (SELECT FROM jobs j WHERE j.id = $1::uuid AND j.state <> 'expired')
ORDER BY seq NULLS LAST

-- name: payloads_put
-- stores outputs that are sent by digest, each once (E6). A lock keeps their jobs from expiring. A job that does
-- not exist is an error with its places in the arrays from 1. $1 jobs, $2 digests, $3 bytes.
WITH w AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::bytea[]) WITH ORDINALITY AS w (job, digest, body, place)
), j AS MATERIALIZED (
    SELECT id, n FROM jobs WHERE id = ANY ($1::uuid[]) AND state <> 'expired' ORDER BY id FOR KEY SHARE
), put AS (
    INSERT INTO payloads (n, digest, body)
    SELECT j.n, w.digest, w.body FROM w JOIN j ON j.id = w.job ORDER BY j.n, w.digest
    ON CONFLICT DO NOTHING
)
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE CAST('quipu: lost payloads ' || string_agg(w.place::text, ',') AS int) END
FROM w
WHERE NOT EXISTS (SELECT FROM j WHERE j.id = w.job)

-- name: row_input
-- reads the input of a request from its row (T4). $1 job, $2 request.
SELECT body FROM dispatches WHERE job = $1::uuid AND guid = $2::uuid AND kind = 'request'
