-- lease_extend: the heartbeat (E9): extends a lease, or takes the first one of a run, and moves the due time with it. $1 job, $2 request, $3 turn, $4 fence, $5 holder, $6 microseconds, $7 whether the run may have taken it, one fence ahead, without knowing.
UPDATE dispatches d
SET fence = CASE WHEN d.holder IS NULL THEN d.fence + 1 ELSE d.fence END,
    runs = CASE WHEN d.holder IS NULL THEN d.runs + 1 ELSE d.runs END,
    holder = $5::text, lease_until = micros() + $6::int8, next_at = greatest(d.next_at, micros() + $6::int8)
FROM jobs j
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.held IS NULL
  AND (d.fence = $4::int8 AND coalesce(d.holder = $5::text, true)
       OR $7::bool AND d.fence = $4::int8 + 1 AND d.holder = $5::text)
  AND j.id = d.job AND j.state = 'open'
RETURNING d.runs, j.generation, d.fence
