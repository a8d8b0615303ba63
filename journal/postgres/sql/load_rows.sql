-- load_rows: dispatch rows by primary key, locked (J8), of the jobs that this transaction holds: their rows are locked again first, at no cost, and the others' are skipped, so that nobody waits for a row of a job that is left out (J3). $1 jobs, $2 GUIDs.
SELECT d.guid, d.job, d.kind, d.activity, d.dad, d.topic, d.element, d.body, d.next_at, d.held, d.dead, d.publication,
       d.published_at, d.turn, d.turn_sent, d.try, d.runs, d.holder, d.lease_until, d.fence, d.within_at,
       d.effects_seq, d.effects_hash, d.origin, d.sender, d.pauses, d.undo, d.input
FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
JOIN jobs j ON j.id = w.job
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
FOR NO KEY UPDATE OF j SKIP LOCKED
FOR UPDATE OF d
