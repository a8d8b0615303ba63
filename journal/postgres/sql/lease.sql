-- name: lease_take
-- takes a request before a run that is not its first delivery (E9), by test-and-set on turn and holder. It does not
-- while an effect of the turn may still be running (E4). $1 job, $2 request, $3 turn, $4 holder, $5 session, $6
-- most runs. Without a row, lease_look says why. The lock keeps the session from ending meanwhile (W8).
WITH alive AS MATERIALIZED (SELECT s.id FROM sessions s WHERE s.id = $5::int8 AND NOT s.dead FOR KEY SHARE SKIP LOCKED)
UPDATE dispatches d
SET rev = d.rev + 1, holder = $4::text, session = alive.id, fence = d.fence + 1, runs = d.runs + 1, next_at = NULL
FROM jobs j, alive
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.held IS NULL
  AND d.runs < $6::int8
  AND (d.holder IS NULL OR d.holder = $4::text)
  AND NOT EXISTS (
      SELECT FROM effects e
      WHERE e.n = j.n AND e.request = d.guid AND e.state = 'started' AND e.turn = d.turn AND e.until > micros() OFFSET 0)
  AND j.id = d.job AND j.state = 'open'
RETURNING d.fence, d.runs, j.generation

-- name: lease_exhausted
-- makes the row of a request that ran too often due, marked by its runs, so that an engine holds it (S8). $1 job, $2
-- request, $3 turn, $4 holder, $5 most runs.
UPDATE dispatches d
SET rev = d.rev + 1, runs = d.runs + 1, holder = NULL, session = NULL, next_at = micros()
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.held IS NULL
  AND d.runs = $5::int8 AND (d.holder IS NULL OR d.holder = $4::text)
RETURNING 1

-- name: lease_keep
-- takes the lease of a run that has none. An earlier call of the run may have taken it without learning so; the
-- fence is one higher then (E9). For a run that has its lease it changes nothing that counts. $1 job, $2 request,
-- $3 turn, $4 fence, $5 holder, $6 session, $7 whether the run knows of no lease.
WITH alive AS MATERIALIZED (SELECT s.id FROM sessions s WHERE s.id = $6::int8 AND NOT s.dead FOR KEY SHARE SKIP LOCKED)
UPDATE dispatches d
SET rev = d.rev + 1,
    fence = CASE WHEN d.holder IS NULL THEN d.fence + 1 ELSE d.fence END,
    runs = CASE WHEN d.holder IS NULL THEN d.runs + 1 ELSE d.runs END,
    holder = $5::text, session = alive.id, next_at = NULL
FROM jobs j, alive
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.held IS NULL
  AND (d.fence = $4::int8 AND coalesce(d.holder = $5::text, true)
       OR $7::bool AND d.fence = $4::int8 + 1 AND d.holder = $5::text)
  AND j.id = d.job AND j.state = 'open'
RETURNING d.runs, j.generation, d.fence

-- name: lease_return
-- ends a run that gives no answer: the run is not counted, it begins nothing any more, and the row is due at once
-- (E9). $1 job, $2 request, $3 turn, $4 holder, $5 whether it is sent again only after a look (T2).
UPDATE dispatches d
SET rev = d.rev + 1, fence = d.fence + 1, runs = greatest(d.runs - 1, 0), holder = NULL, session = NULL,
    turn_sent = CASE WHEN $5::bool THEN d.turn ELSE d.turn_sent END,
    next_at = CASE WHEN d.held IS NULL THEN micros() ELSE d.next_at END
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.holder = $4::text
RETURNING 1

-- name: lease_look
-- says why a worker's write matched no row. $1 job, $2 request, $3 session. Returns the job's state; if the row
-- exists, whether it is a request that is not held, its turn, runs and holder, and whether an effect of its turn
-- may still be running (E4); and whether the session is alive.
SELECT j.state, d.guid IS NOT NULL AND d.kind = 'request' AND d.held IS NULL, d.turn, d.runs, d.holder,
       EXISTS (
           SELECT FROM effects e
           WHERE e.n = j.n AND e.request = d.guid AND e.state = 'started' AND e.turn = d.turn AND e.until > micros()),
       EXISTS (SELECT FROM sessions s WHERE s.id = $3::int8 AND NOT s.dead)
FROM jobs j LEFT JOIN dispatches d ON d.job = j.id AND d.guid = $2::uuid
WHERE j.id = $1::uuid
