-- effects_by_key: the effects of a key, with the entries that first named them, by job; none of tombstones. $1 key.
SELECT e.key, e.name, e.class, e.n, e.state, e.result, e.error, e.fence, e.holder,
       coalesce(e.state = 'started' AND d.fence = e.fence AND d.holder = e.holder AND d.lease_until > micros(), false), e.position, e.vouched,
       e.job, e.request, x.body
FROM effects e
JOIN jobs j ON j.id = e.job AND j.state <> 'expired'
JOIN entries x ON x.job = e.job AND x.chain = e.request AND x.seq = e.seq
LEFT JOIN dispatches d ON d.job = e.job AND d.guid = e.request
WHERE e.key = $1::bytea
ORDER BY e.job
