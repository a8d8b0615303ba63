-- view_rows: all dispatch rows of a job, and the starts that it ordered and that have not begun. $1 job.
SELECT d.guid, d.job, d.kind, d.activity, d.dad, d.topic, d.element, d.body, d.next_at, d.held, d.dead, d.publication,
       d.published_at, d.turn, d.turn_sent, d.try, d.runs, d.holder, d.lease_until, d.fence, d.within_at,
       d.effects_seq, d.effects_hash, d.origin, d.sender, d.pauses, d.undo, d.input
FROM (SELECT * FROM dispatches WHERE job = $1::uuid UNION ALL SELECT * FROM dispatches WHERE sender = $1::uuid) AS d
ORDER BY d.origin, d.guid
