-- name: signals_put
-- records a signal from outside. $1 GUID, $2 state. A second one is 23505.
INSERT INTO signals (guid, state, at) VALUES ($1::uuid, $2::text, micros())

-- name: signals_send
-- records a signal from outside that is still to be delivered. $1 GUID. Returns a row when it is new; a transaction
-- that sends the same is waited for.
INSERT INTO signals (guid, state, at) VALUES ($1::uuid, 'kept', micros()) ON CONFLICT DO NOTHING RETURNING 1

-- name: signals_became
-- what became of signals, where they came from outside. $1 GUIDs, $2 states.
UPDATE signals s SET state = w.state FROM unnest($1::uuid[], $2::text[]) AS w (guid, state) WHERE s.guid = w.guid

-- name: signals_expire
-- removes kept signals whose time has passed: nobody waited for them. $1 limit. Returns their number.
WITH late AS MATERIALIZED (
    SELECT d.job, d.guid
    FROM dispatches d
    WHERE d.within_at IS NOT NULL AND d.within_at <= (SELECT micros()) AND d.kind = 'signal' AND d.held = 'kept'
    ORDER BY d.within_at
    LIMIT $1::int8
    FOR UPDATE OF d SKIP LOCKED
), gone AS (
    DELETE FROM dispatches d USING late WHERE d.job = late.job AND d.guid = late.guid RETURNING d.guid
), missed AS (
    UPDATE signals s SET state = 'missed' FROM gone WHERE s.guid = gone.guid
)
SELECT count(*) FROM gone

-- name: signal_known
-- what became of a signal from outside (1.4). $1 GUID.
SELECT state FROM signals WHERE guid = $1::uuid

-- name: mail_due
-- signals of mailboxes that this transaction holds that are due, whether their message is named or not, those that
-- were kept first, locked. What was kept is in the order of its expiry, which no claim moves. $1 mailboxes, $2 how
-- many of each at most.
SELECT {row:d}
FROM unnest($1::uuid[]) AS b (mailbox)
CROSS JOIN LATERAL (
    SELECT * FROM dispatches d WHERE d.job = b.mailbox AND d.kind = 'signal' AND d.held IS NULL
    ORDER BY d.within_at, d.published_at, d.guid LIMIT $2::int8 FOR UPDATE
) AS d

-- name: mail_rows
-- the signals of mailboxes that this transaction holds, locked; a row that is gone or held says that the signal was
-- handled (1.11). $1 mailboxes, $2 GUIDs. Returns the place in the arrays from 1 behind the row. Each is looked up by
-- its key, as claim does.
SELECT {row:d}, w.n
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, guid, n)
JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
WHERE d.kind = 'signal' AND coalesce(d.held, '') = ''
FOR UPDATE OF d

-- name: mail_waits
-- the oldest open waits of mailboxes that this transaction holds, after those that it has read, with the headers of
-- their jobs; those of quarantined jobs take nothing any more (C16). $1 mailboxes, $2 times and $3 GUIDs of the last
-- ones read, $4 how many of each at most.
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
