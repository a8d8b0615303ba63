-- name: signals_put
-- records signals from outside. $1 GUIDs, $2 what they are addressed to, $3 states. A second one is 23505.
INSERT INTO signals (guid, job, state) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[])

-- name: signals_became
-- records what became of signals; it changes only those from outside. $1 GUIDs, $2 what they are addressed to, $3
-- states, $4 why starts of clients were refused, '' for others.
UPDATE signals s SET state = w.state, reason = nullif(w.reason, '')
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[]) AS w (guid, job, state, reason) WHERE s.guid = w.guid AND s.job = w.job

-- name: signals_known
-- reads what became of signals from outside (1.4). $1 GUIDs, $2 what they are addressed to.
SELECT s.guid, s.job, s.state, coalesce(s.reason, '')
FROM unnest($1::uuid[], $2::uuid[]) AS w (guid, job) JOIN signals s ON s.guid = w.guid AND s.job = w.job

-- name: mail_lock_skip
-- locks the mailboxes that no other transaction has locked (J3). $1 lock keys. Returns the locked ones.
SELECT k FROM unnest($1::int8[]) AS w (k) WHERE pg_try_advisory_xact_lock(k)

-- name: mail_due
-- reads, locked, the due signals of mailboxes, whether a message named them or not, formerly kept ones first. Kept
-- signals come in the order of their expiry, which no claim changes. A mailbox that this transaction could not lock
-- is left out; trying a lock that it has costs nothing. $1 mailboxes, $2 their lock keys, $3 most of each.
SELECT {row:d}
FROM unnest($1::uuid[], $2::int8[]) AS b (mailbox, k)
CROSS JOIN LATERAL (
    SELECT * FROM dispatches d WHERE d.job = b.mailbox AND d.kind = 'signal' AND d.held IS NULL
    ORDER BY d.within_at, d.published_at, d.guid LIMIT $3::int8 FOR UPDATE
) AS d
WHERE pg_try_advisory_xact_lock(b.k)

-- name: mail_rows
-- reads, locked, the rows of signals, of mailboxes as in mail_due. $1 mailboxes, $2 GUIDs, $3 the mailboxes' lock
-- keys. Each row is looked up by its key, as in claim.
SELECT {row:d}
FROM unnest($1::uuid[], $2::uuid[], $3::int8[]) AS w (job, guid, k)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
WHERE pg_try_advisory_xact_lock(w.k)
FOR UPDATE OF d

-- name: mail_waits
-- reads the oldest open waits of mailboxes that this transaction has locked, after those it has read, with the
-- headers of their jobs. Waits of quarantined jobs are left out (C16). $1 mailboxes, $2 times and $3 GUIDs of the
-- last waits read, $4 most of each.
SELECT {wait:w},
       b.mailbox, j.key, j.generation, j.flow_name, j.flow_version, j.flow_digest, j.trace
FROM unnest($1::uuid[], $2::int8[], $3::uuid[], $4::int8[]) AS b (mailbox, since, guid, most)
CROSS JOIN LATERAL (
    SELECT * FROM waits w
    WHERE w.mailbox = b.mailbox AND (w.since, w.guid) > (b.since, b.guid)
      AND (SELECT q.state FROM jobs q WHERE q.id = w.job) IS DISTINCT FROM 'quarantined'
    ORDER BY w.since, w.guid
    LIMIT b.most
) AS w
LEFT JOIN jobs j ON j.id = w.job
ORDER BY b.mailbox, w.since, w.guid
