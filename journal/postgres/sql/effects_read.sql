-- effects_read: effects by their keys (E1); live compares with the lease on the request's row. $1 jobs, $2 keys. Returns the place in the arrays from 1 behind the effect, and its request.
SELECT e.key, e.name, e.class, e.n, e.state, e.result, e.error, e.fence, e.holder,
       coalesce(e.state = 'started' AND d.fence = e.fence AND d.holder = e.holder AND d.lease_until > micros(), false),
       e.position, e.vouched, w.n, e.request
FROM unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY AS w (job, key, n)
JOIN effects e ON e.key = w.key AND e.job = w.job
LEFT JOIN dispatches d ON d.job = e.job AND d.guid = e.request
