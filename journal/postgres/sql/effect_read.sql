-- effect_read: one effect by its key (E1); live compares with the lease on its request's row. $1 job, $2 key.
SELECT e.key, e.name, e.class, e.n, e.state, e.result, e.error, e.fence, e.holder,
       coalesce(e.state = 'started' AND d.fence = e.fence AND d.holder = e.holder AND d.lease_until > micros(), false)
FROM effects e LEFT JOIN dispatches d ON d.job = e.job AND d.guid = e.request
WHERE e.job = $1::uuid AND e.key = $2::bytea
