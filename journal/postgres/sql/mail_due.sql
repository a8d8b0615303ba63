-- mail_due: signals of mailboxes that this transaction holds that are due, whether their message is named or not, those that were kept first, locked. What was kept is in the order of its expiry, which no claim moves. $1 mailboxes, $2 how many of each at most.
SELECT d.guid, d.job, d.kind, d.activity, d.dad, d.topic, d.element, d.body, d.next_at, d.held, d.dead, d.publication,
       d.published_at, d.turn, d.turn_sent, d.try, d.runs, d.holder, d.lease_until, d.fence, d.within_at,
       d.effects_seq, d.effects_hash, d.origin, d.sender, d.pauses, d.undo, d.input
FROM unnest($1::uuid[]) AS b (mailbox)
CROSS JOIN LATERAL (
    SELECT * FROM dispatches d WHERE d.job = b.mailbox AND d.kind = 'signal' AND d.held IS NULL
    ORDER BY d.within_at, d.published_at, d.guid LIMIT $2::int8 FOR UPDATE
) AS d
