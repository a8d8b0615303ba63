-- load_named_rows: dispatch rows by primary key, whoever they are addressed to, locked (J8). $1 jobs, $2 GUIDs. Returns the row, and its place in the arrays from 1.
SELECT d.guid, d.job, d.kind, d.activity, d.dad, d.topic, d.element, d.body, d.next_at, d.held, d.dead, d.publication,
       d.published_at, d.turn, d.turn_sent, d.try, d.runs, d.holder, d.lease_until, d.fence, d.within_at,
       d.effects_seq, d.effects_hash, d.origin, d.sender, d.pauses, d.undo, d.input, w.n
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, guid, n)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
FOR UPDATE OF d
