-- effects_of_job: all effects of a job, for verification (V9). $1 job.
SELECT e.key, e.name, e.class, e.n, e.state, e.result, e.error, e.fence, e.holder,
       coalesce(e.state = 'started' AND d.fence = e.fence AND d.holder = e.holder AND d.lease_until > micros(), false),
       e.position, e.vouched
FROM effects e LEFT JOIN dispatches d ON d.job = e.job AND d.guid = e.request
WHERE e.job = $1::uuid
ORDER BY e.request, e.seq
