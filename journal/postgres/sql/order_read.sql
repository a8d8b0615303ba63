-- order_read: the row of a child's start that has no inception yet (1.11). $1 child.
SELECT d.guid, d.job, d.kind, d.activity, d.dad, d.topic, d.element, d.body, d.next_at, d.held, d.dead, d.publication,
       d.published_at, d.turn, d.turn_sent, d.try, d.runs, d.holder, d.lease_until, d.fence, d.within_at,
       d.effects_seq, d.effects_hash, d.origin, d.sender, d.pauses, d.undo, d.input
FROM dispatches d
WHERE d.job = $1::uuid AND d.guid = $1::uuid AND d.kind = 'start' AND NOT EXISTS (SELECT FROM jobs j WHERE j.id = $1::uuid)
