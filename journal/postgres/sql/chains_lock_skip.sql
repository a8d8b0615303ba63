-- chains_lock_skip: chains_lock for those that nobody holds: a batch of effects waits for no row (J8). $1 jobs, $2 GUIDs.
SELECT d.job, d.guid, d.kind, d.activity, d.dad, d.next_at, d.held, d.dead, d.turn, d.turn_sent, d.try, d.runs, d.holder,
       d.lease_until, d.fence, d.effects_seq, d.effects_hash, d.undo, j.generation, j.state, j.trace
FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
JOIN jobs j ON j.id = d.job
FOR UPDATE OF d SKIP LOCKED
