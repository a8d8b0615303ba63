-- lease_look: why a write of a worker met nothing. $1 job, $2 request. Returns the job's state and, where the row stands, whether it is a request that is not held, its turn, fence, runs, holder, and whether its lease is alive, or what its turn started may still go on (E4).
SELECT j.state, d.guid IS NOT NULL AND d.kind = 'request' AND d.held IS NULL, d.turn, d.fence, d.runs, d.holder,
       coalesce(d.lease_until > micros(), false),
       EXISTS (
           SELECT FROM effects e
           WHERE e.job = d.job AND e.request = d.guid AND e.state = 'started' AND e.turn = d.turn AND e.until > micros())
FROM jobs j LEFT JOIN dispatches d ON d.job = j.id AND d.guid = $2::uuid
WHERE j.id = $1::uuid
