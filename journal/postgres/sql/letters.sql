-- name: letters
-- dead letters, newest first (E10). $1 ended ones too, $2 limit.
SELECT l.id, l.job, l.guid, l.kind, l.activity, l.dad, l.reason, l.message, l.ledger, l.at, l.state, coalesce(j.key, '')
FROM dead_letters l LEFT JOIN jobs j ON j.id = l.job
WHERE $1::bool OR l.state = 'open'
ORDER BY l.id DESC
LIMIT $2::int8

-- name: letters_of_job
-- the dead letters of a job, oldest first. $1 job.
SELECT l.id, l.job, l.guid, l.kind, l.activity, l.dad, l.reason, l.message, l.ledger, l.at, l.state, coalesce(j.key, '')
FROM dead_letters l LEFT JOIN jobs j ON j.id = l.job
WHERE l.job = $1::uuid
ORDER BY l.id

-- name: letter_read
-- a dead letter, and how often an operator acted on its message before (E10). $1 id.
SELECT l.job, l.guid, l.state,
       (SELECT count(*) FROM dead_letters m
        WHERE m.job = l.job AND m.guid = l.guid AND m.state IN ('retried', 'resolved', 'failed')), l.reason
FROM dead_letters l WHERE l.id = $1::int8

-- name: letter_end
-- ends an open dead letter by test-and-set (E10). $1 id, $2 state.
WITH ended AS (
    UPDATE dead_letters SET state = $2::text WHERE id = $1::int8 AND state = 'open' RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN 0 ELSE CAST('quipu: lost letters, ended ' || count(*) AS int) END FROM ended
