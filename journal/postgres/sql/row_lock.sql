-- row_lock: locks one dispatch row, which is the lock of its effect chain (J8), and reads it with its job. $1 job, $2 GUID.
SELECT d.guid, d.job, d.kind, d.activity, d.dad, d.topic, d.element, d.body, d.next_at, d.held, d.dead, d.publication,
       d.published_at, d.turn, d.turn_sent, d.try, d.runs, d.holder, d.lease_until, d.fence, d.within_at,
       d.effects_seq, d.effects_hash, d.origin, d.sender, d.pauses, d.undo, d.input, j.generation, j.state, j.trace
FROM dispatches d JOIN jobs j ON j.id = d.job
WHERE d.job = $1::uuid AND d.guid = $2::uuid
FOR UPDATE OF d
