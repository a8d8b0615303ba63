-- name: lease_take
-- takes a request before a run that is not its first delivery (E9), by test-and-set on turn and lease, unless what
-- the turn started may still go on (E4). $1 job, $2 request, $3 turn, $4 holder, $5 microseconds, $6 most runs. No
-- row: lease_look says why.
UPDATE dispatches d
SET rev = d.rev + 1, holder = $4::text, lease_until = micros() + $5::int8, fence = d.fence + 1, runs = d.runs + 1,
    next_at = greatest(d.next_at, micros() + $5::int8)
FROM jobs j
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.held IS NULL
  AND d.runs < $6::int8
  AND (d.holder IS NULL OR d.holder = $4::text OR d.lease_until IS NULL OR d.lease_until <= micros())
  AND NOT EXISTS (
      SELECT FROM effects e
      WHERE e.n = j.n AND e.request = d.guid AND e.state = 'started' AND e.turn = d.turn AND e.until > micros() OFFSET 0)
  AND j.id = d.job AND j.state = 'open'
RETURNING d.fence, d.runs, j.generation

-- name: lease_extend
-- the heartbeat (E9): extends a lease, or takes the first one of a run, and moves the due time with it. $1 job, $2
-- request, $3 turn, $4 fence, $5 holder, $6 microseconds, $7 whether the run may have taken it, one fence ahead,
-- without knowing.
UPDATE dispatches d
SET rev = d.rev + 1,
    fence = CASE WHEN d.holder IS NULL THEN d.fence + 1 ELSE d.fence END,
    runs = CASE WHEN d.holder IS NULL THEN d.runs + 1 ELSE d.runs END,
    holder = $5::text, lease_until = micros() + $6::int8, next_at = greatest(d.next_at, micros() + $6::int8)
FROM jobs j
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.held IS NULL
  AND (d.fence = $4::int8 AND coalesce(d.holder = $5::text, true)
       OR $7::bool AND d.fence = $4::int8 + 1 AND d.holder = $5::text)
  AND j.id = d.job AND j.state = 'open'
RETURNING d.runs, j.generation, d.fence

-- name: lease_return
-- a drained run takes its run back, and the row is due at once (E9). $1 job, $2 request, $3 turn, $4 fence, $5
-- holder. Returning twice counts once.
UPDATE dispatches d
SET rev = d.rev + 1,
    runs = CASE WHEN d.holder IS NULL THEN d.runs ELSE greatest(d.runs - 1, 0) END,
    holder = NULL, lease_until = NULL, next_at = CASE WHEN d.held IS NULL THEN micros() ELSE d.next_at END
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.fence = $4::int8
  AND (d.holder IS NULL OR d.holder = $5::text)
RETURNING 1

-- name: lease_look
-- why a write of a worker met nothing. $1 job, $2 request. Returns the job's state and, where the row stands, whether
-- it is a request that is not held, its turn, fence, runs, holder, and whether its lease is alive, or what its turn
-- started may still go on (E4).
SELECT j.state, d.guid IS NOT NULL AND d.kind = 'request' AND d.held IS NULL, d.turn, d.fence, d.runs, d.holder,
       coalesce(d.lease_until > micros(), false),
       EXISTS (
           SELECT FROM effects e
           WHERE e.n = j.n AND e.request = d.guid AND e.state = 'started' AND e.turn = d.turn AND e.until > micros())
FROM jobs j LEFT JOIN dispatches d ON d.job = j.id AND d.guid = $2::uuid
WHERE j.id = $1::uuid
