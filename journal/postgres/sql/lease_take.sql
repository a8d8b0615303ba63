-- lease_take: takes a request before a run that is not its first delivery (E9), by test-and-set on turn and lease, unless what the turn started may still go on (E4). $1 job, $2 request, $3 turn, $4 holder, $5 microseconds, $6 most runs. No row: lease_look says why.
UPDATE dispatches d
SET holder = $4::text, lease_until = micros() + $5::int8, fence = d.fence + 1, runs = d.runs + 1,
    next_at = greatest(d.next_at, micros() + $5::int8)
FROM jobs j
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.held IS NULL
  AND d.runs < $6::int8
  AND (d.holder IS NULL OR d.holder = $4::text OR d.lease_until IS NULL OR d.lease_until <= micros())
  AND NOT EXISTS (
      SELECT FROM effects e
      WHERE e.job = d.job AND e.request = d.guid AND e.state = 'started' AND e.turn = d.turn AND e.until > micros())
  AND j.id = d.job AND j.state = 'open'
RETURNING d.fence, d.runs, j.generation
