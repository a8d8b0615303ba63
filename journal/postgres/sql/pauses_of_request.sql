-- pauses_of_request: what a durable function waited for, each with the entry that recorded it, in the order of their coming; behind them what stands on its row, with neither seq nor entry, on the same snapshot (E12). None of a tombstone. $1 job, $2 request.
SELECT w.seq, w.kind, w.name, w.position, e.body, NULL::bytea
FROM woken w JOIN entries e ON e.job = w.job AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = w.seq
WHERE w.job = $1::uuid AND w.request = $2::uuid AND EXISTS (SELECT FROM jobs j WHERE j.id = $1::uuid AND j.state <> 'expired')
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, d.pauses
FROM dispatches d
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND EXISTS (SELECT FROM jobs j WHERE j.id = $1::uuid AND j.state <> 'expired')
ORDER BY seq NULLS LAST
