-- chains_lock: locks dispatch rows, each the lock of its effect chain (J8), in the order of the arrays, waiting for each, and reads what effects need of them and of their jobs. $1 jobs, $2 GUIDs.
SELECT d.job, d.guid, d.kind, d.activity, d.dad, d.next_at, d.held, d.dead, d.turn, d.turn_sent, d.try, d.runs, d.holder,
       d.lease_until, d.fence, d.effects_seq, d.effects_hash, d.undo, j.generation, j.state, j.trace
FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
JOIN jobs j ON j.id = d.job
FOR UPDATE OF d
