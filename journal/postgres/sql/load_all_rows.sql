-- load_all_rows: every dispatch row of jobs that this transaction holds, and the starts that they sent and await, locked (C15, J8). $1 jobs.
WITH own AS MATERIALIZED (
    SELECT * FROM dispatches WHERE job = ANY ($1::uuid[]) ORDER BY job, guid FOR UPDATE
), sent AS MATERIALIZED (
    SELECT * FROM dispatches WHERE sender = ANY ($1::uuid[]) ORDER BY job, guid FOR UPDATE
)
SELECT d.guid, d.job, d.kind, d.activity, d.dad, d.topic, d.element, d.body, d.next_at, d.held, d.dead, d.publication,
       d.published_at, d.turn, d.turn_sent, d.try, d.runs, d.holder, d.lease_until, d.fence, d.within_at,
       d.effects_seq, d.effects_hash, d.origin, d.sender, d.pauses, d.undo, d.input
FROM (SELECT * FROM own UNION ALL SELECT * FROM sent) AS d
