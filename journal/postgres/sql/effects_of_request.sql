-- effects_of_request: the effects of one request, in the order of their first entry; none of a tombstone. $1 job, $2 request.
SELECT e.key, e.name, e.class, e.n, e.state, e.result, e.error, e.fence, e.holder,
       coalesce(e.state = 'started' AND d.fence = e.fence AND d.holder = e.holder AND d.lease_until > micros(), false),
       e.position, e.vouched
FROM effects e LEFT JOIN dispatches d ON d.job = e.job AND d.guid = e.request
WHERE e.job = $1::uuid AND e.request = $2::uuid AND EXISTS (SELECT FROM jobs j WHERE j.id = $1::uuid AND j.state <> 'expired')
ORDER BY e.seq
