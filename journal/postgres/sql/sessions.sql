-- name: session_open
-- begins the session of a process (W8). $1 name, $2 lease in microseconds, $3 whether it is an engine, $4 build, $5
-- roles, $6 topics, $7 lanes, $8 those of its topics that may be early, $9 as $8 of session_renew. Returns its number,
-- and the topics that are early nowhere now, as session_renew does.
INSERT INTO sessions (name, lease, engine, build, roles, topics, lanes, early, renewed_at, since)
SELECT $1::text, $2::int8, $3::bool, $4::text, $5::text[], $6::text[], $7::int8, $8::text[], now, now FROM micros() AS now
RETURNING id, (SELECT string_agg(DISTINCT t, E'\n') FROM sessions o, unnest(o.early) t
               WHERE CASE WHEN o.dead THEN o.died_at > micros() - $9::int8 ELSE o.renewed_at <= micros() - o.lease / 2 END)

-- name: session_list
-- lists the live processes, the oldest first, each with '' in the place of a topic that it serves no more; or those that
-- were not heard of for their lease, and that nobody has declared dead. $1 limit, $2 whether the latter.
SELECT s.name, s.build, array_to_string(s.roles, E'\n'),
       (SELECT string_agg(CASE WHEN t = ANY (s.withdrawn) THEN '' ELSE t END, E'\n' ORDER BY place) FROM unnest(s.topics) WITH ORDINALITY AS w (t, place)), s.engine, s.lease, s.since, s.renewed_at, s.lanes, array_to_string(s.ran, E'\n'),
       s.busy, s.busy_job, s.busy_message, array_to_string(s.troubles, E'\n'), array_to_string(s.early, E'\n'), array_to_string(s.early_runs, E'\n')
FROM sessions s, micros() AS now
WHERE NOT s.dead AND (s.renewed_at <= now - s.lease) = $2::bool
ORDER BY s.id
LIMIT $1::int8

-- name: session_renew
-- renews a session. A gap of more than two thirds of its lease restarts since. $1 session, $2 runs of its topics that
-- have ended in the last minute, $3 for how many microseconds it has been busy with the message $5 of the job $4, 0 for
-- none, $6 its troubles, $7 its early runs, $8 for how many microseconds the topics of a dead session are early nowhere.
-- Returns how many other sessions must be ended or forgotten, in how many microseconds the next one must be (null for
-- never), how many engines live, and the topics that are early nowhere: those of sessions that were declared dead since
-- then, or that have missed a renewal. No row: this session has been ended.
UPDATE sessions s
SET renewed_at = now, ran = $2::int8[], busy = $3::int8, busy_job = $4::uuid, busy_message = $5::uuid, troubles = $6::text[], early_runs = $7::int8[],
    since = CASE WHEN now - s.renewed_at > s.lease * 2 / 3 THEN now ELSE s.since END
FROM micros() AS now
WHERE s.id = $1::int8 AND NOT s.dead
RETURNING (SELECT count(*) FROM sessions o WHERE o.id <> s.id AND NOT (o.freed AND o.died_at > now - $8::int8) AND (o.dead OR o.renewed_at <= now - o.lease)),
          (SELECT min(o.renewed_at + o.lease) - now FROM sessions o WHERE o.id <> s.id AND NOT o.dead AND o.renewed_at > now - o.lease),
          s.engine::int + (SELECT count(*) FROM sessions o WHERE o.id <> s.id AND o.engine AND NOT o.dead AND o.renewed_at > now - o.lease),
          (SELECT string_agg(DISTINCT t, E'\n') FROM sessions o, unnest(o.early) t
           WHERE o.id <> s.id AND CASE WHEN o.dead THEN o.died_at > now - $8::int8 ELSE o.renewed_at <= now - o.lease / 2 END)

-- name: session_end_dead
-- declares sessions dead that were not renewed for their lease. The declaring session must itself have been renewed
-- all that time until now, and for its own lease: this statement may come long after the renewal that it follows. A
-- session that a running commit has locked to take something is left for the next time. $1 session.
WITH gone AS MATERIALIZED (
    SELECT o.id
    FROM sessions o
    JOIN sessions s ON s.id = $1::int8 AND NOT s.dead AND o.id <> s.id AND s.since <= micros() - greatest(o.lease, s.lease)
         AND s.renewed_at >= micros() - s.lease * 2 / 3
    WHERE NOT o.dead AND o.renewed_at <= micros() - o.lease
    FOR UPDATE OF o SKIP LOCKED
)
UPDATE sessions o SET dead = true, died_at = micros() FROM gone WHERE o.id = gone.id

-- name: session_dead
-- lists dead sessions, which may still hold something or can be forgotten, and says whether this login may forget them.
-- $1 as $8 of session_renew.
SELECT id, name, has_table_privilege('sessions', 'DELETE') FROM sessions
WHERE dead AND NOT (freed AND died_at > micros() - $1::int8)

-- name: session_end
-- ends a session by its own process, after its commits that take something. Raising renewed_at marks everything as
-- published, so that nothing is sent again. None of its topics has killed it. $1 session, $2 as $3 of session_resend.
WITH own AS MATERIALIZED (SELECT s.id FROM sessions s WHERE s.id = $1::int8 AND NOT s.dead FOR UPDATE)
UPDATE sessions s SET dead = true, early = ARRAY[]::text[], renewed_at = micros() + $2::int8 FROM own WHERE s.id = own.id

-- name: session_free
-- frees the rows that a dead session held: they get a higher fence, are due now, and are sent without a look (W8,
-- T2). $1 session, $2 most. Locked rows are left for the next time.
WITH w AS MATERIALIZED (
    SELECT d.job, d.guid
    FROM sessions s JOIN dispatches d ON d.session = s.id
    WHERE s.id = $1::int8 AND s.dead AND d.holder IS NOT NULL
    LIMIT $2::int8
    FOR UPDATE OF d SKIP LOCKED
)
UPDATE dispatches d
SET rev = d.rev + 1, fence = d.fence + 1, holder = NULL, session = NULL, turn_sent = -1,
    next_at = CASE WHEN d.held IS NULL THEN micros() ELSE d.next_at END
FROM w WHERE d.job = w.job AND d.guid = w.guid
RETURNING 1

-- name: session_resend
-- takes from a dead session the rows that it may not have published: they are due now, and are sent without a look
-- (W8, T2). $1 session, $2 most, $3 microseconds before the last renewal within which rows may be unpublished. Such
-- rows are due soon; rows that are due in more than a minute are skipped, since there are many timers.
WITH w AS MATERIALIZED (
    SELECT d.job, d.guid
    FROM sessions s JOIN dispatches d
      ON d.held IS NULL AND d.next_at IS NOT NULL AND d.next_at > s.renewed_at - $3::int8 AND d.next_at < micros() + 60000000
    WHERE s.id = $1::int8 AND s.dead AND d.session = s.id AND d.holder IS NULL AND d.published_at > s.renewed_at - $3::int8
    LIMIT $2::int8
    FOR UPDATE OF d SKIP LOCKED
)
UPDATE dispatches d
SET rev = d.rev + 1, session = NULL, turn_sent = -1, next_at = micros()
FROM w WHERE d.job = w.job AND d.guid = w.guid
RETURNING 1

-- name: session_held
-- lists the requests that a session holds. $1 session, $2 most.
SELECT job, guid, turn, holder, fence FROM dispatches
WHERE session = $1::int8 AND holder IS NOT NULL AND kind = 'request'
LIMIT $2::int8

-- name: session_forget
-- forgets a dead session that holds nothing. One with early topics stays for a while from its end, as freed. Returns a
-- row when it is freed or deleted for the first time. $1 session, $2 as $8 of session_renew.
WITH w AS MATERIALIZED (
    SELECT s.id, s.freed, cardinality(s.early) = 0 OR s.died_at <= micros() - $2::int8 AS ends
    FROM sessions s
    WHERE s.id = $1::int8 AND s.dead AND NOT EXISTS (SELECT FROM dispatches d WHERE d.session = s.id AND d.holder IS NOT NULL)
    FOR UPDATE
), kept AS (
    UPDATE sessions s SET freed = true FROM w WHERE s.id = w.id AND NOT w.ends RETURNING 1
), gone AS (
    DELETE FROM sessions s USING w WHERE s.id = w.id AND w.ends RETURNING 1
)
SELECT 1 FROM w WHERE NOT w.freed

-- name: session_lost
-- finds the leases that have ended. $1 jobs, $2 requests, $3 turns, $4 holders. Returns their places from 1, and
-- the state of the job, null if it does not exist.
SELECT w.place, j.state
FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::text[]) WITH ORDINALITY AS w (job, guid, turn, holder, place)
LEFT JOIN jobs j ON j.id = w.job
LEFT JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
WHERE NOT coalesce(j.state = 'open' AND d.kind = 'request' AND d.held IS NULL AND d.turn = w.turn AND d.holder = w.holder, false)

-- name: session_withdraw
-- says which of its topics a session serves no more (S8). $1 session, $2 topics.
UPDATE sessions SET withdrawn = $2::text[] WHERE id = $1::int8
