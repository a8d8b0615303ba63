-- mail_rows: the signals of mailboxes that this transaction holds, locked; a row that is gone or held says that the signal was handled (1.11). $1 mailboxes, $2 GUIDs. Returns the place in the arrays from 1 behind the row. Each is looked up by its key, as claim does.
SELECT d.guid, d.job, d.kind, d.activity, d.dad, d.topic, d.element, d.body, d.next_at, d.held, d.dead, d.publication,
       d.published_at, d.turn, d.turn_sent, d.try, d.runs, d.holder, d.lease_until, d.fence, d.within_at,
       d.effects_seq, d.effects_hash, d.origin, d.sender, d.pauses, d.undo, d.input, w.n
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, guid, n)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
WHERE d.kind = 'signal' AND coalesce(d.held, '') = ''
FOR UPDATE OF d
