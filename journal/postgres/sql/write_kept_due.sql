-- write_kept_due: makes the oldest signals due that were kept, and not past their time, in mailboxes where waits were registered, under their locks (J3). $1 mailboxes, $2 how many of each.
UPDATE dispatches d
SET held = NULL, next_at = micros()
FROM unnest($1::uuid[], $2::int8[]) AS w (mailbox, most)
CROSS JOIN LATERAL (
    SELECT k.guid FROM dispatches k
    WHERE k.job = w.mailbox AND k.kind = 'signal' AND k.held = 'kept' AND coalesce(k.within_at > micros(), true)
    ORDER BY k.published_at, k.guid
    LIMIT w.most
) AS k
WHERE d.job = w.mailbox AND d.guid = k.guid
