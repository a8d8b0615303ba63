-- load_all_rows: every dispatch row of jobs that this transaction holds, locked (C15, J8). $1 jobs.
SELECT d.guid, d.job, d.kind, d.activity, d.dad, d.topic, d.element, d.body, d.next_at, d.held, d.dead, d.publication,
       d.published_at, d.turn, d.turn_sent, d.try, d.runs, d.holder, d.lease_until, d.fence, d.within_at,
       d.effects_seq, d.effects_hash, d.origin
FROM dispatches d WHERE d.job = ANY ($1::uuid[])
ORDER BY d.job, d.guid
FOR UPDATE
