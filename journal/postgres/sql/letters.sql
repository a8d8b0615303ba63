-- name: letters
-- lists dead letters, newest first (E10), with the job's key and flow, and the topic of a request whose row exists.
-- $1 also ended ones, $2 flow or '', $3 topic or '', $4 reason or '', $5 the last id of the previous page, $6
-- limit, $7 prefix of the job's key, $8 and $9 written from the one until before the other.
SELECT l.id, l.job, l.guid, l.kind, l.activity, l.dad, l.reason, l.message, l.ledger, l.at, l.state, coalesce(j.key, ''),
       coalesce(j.flow_name, ''), coalesce(d.topic, '')
FROM dead_letters l LEFT JOIN jobs j ON j.id = l.job LEFT JOIN dispatches d ON d.job = l.job AND d.guid = l.guid
WHERE ($1::bool OR l.state = 'open') AND ($2::text = '' OR j.flow_name = $2::text) AND ($3::text = '' OR d.topic = $3::text)
  AND ($4::text = '' OR l.reason = $4::text) AND l.id < $5::int8
  AND starts_with(coalesce(j.key, ''), $7::text) AND l.at >= $8::int8 AND l.at < $9::int8
ORDER BY l.id DESC
LIMIT $6::int8

-- name: letters_of_jobs
-- lists the dead letters of jobs, newest first. $1 jobs, $2 also ended ones, $3 limit.
WITH l AS MATERIALIZED (SELECT * FROM dead_letters WHERE job = ANY ($1::uuid[]) AND ($2::bool OR state = 'open'))
SELECT l.id, l.job, l.guid, l.kind, l.activity, l.dad, l.reason, l.message, l.ledger, l.at, l.state, coalesce(j.key, ''),
       coalesce(j.flow_name, ''), coalesce(d.topic, '')
FROM l LEFT JOIN jobs j ON j.id = l.job LEFT JOIN dispatches d ON d.job = l.job AND d.guid = l.guid
ORDER BY l.id DESC
LIMIT $3::int8

-- name: letters_read
-- reads dead letters, and how often an operator acted on the message of each before (E10). $1 ids.
SELECT l.id, l.job, l.guid, l.state, l.reason,
       (SELECT count(*) FROM dead_letters m
        WHERE m.job = l.job AND m.guid = l.guid AND m.state IN ('retried', 'resolved', 'failed'))
FROM dead_letters l WHERE l.id = ANY ($1::int8[])

-- name: letters_act
-- ends open dead letters by test-and-set (E10). One with a row is no stray any more: what an operator did to a row is
-- counted (S15). $1 ids, $2 states.
WITH ended AS (
    UPDATE dead_letters l
    SET state = w.state, stray = CASE WHEN l.guid = '00000000-0000-0000-0000-000000000000' THEN l.stray END
    FROM unnest($1::int8[], $2::text[]) AS w (id, state)
    WHERE l.id = w.id AND l.state = 'open'
    RETURNING 1
)
SELECT {changed letters 1} FROM ended
