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

-- name: letters_read
-- dead letters, and how often an operator acted on the message of each before (E10). $1 ids.
SELECT l.id, l.job, l.guid, l.state, l.reason,
       (SELECT count(*) FROM dead_letters m
        WHERE m.job = l.job AND m.guid = l.guid AND m.state IN ('retried', 'resolved', 'failed'))
FROM dead_letters l WHERE l.id = ANY ($1::int8[])

-- name: letters_act
-- ends open dead letters by test-and-set (E10). $1 ids, $2 states.
WITH ended AS (
    UPDATE dead_letters l SET state = w.state
    FROM unnest($1::int8[], $2::text[]) AS w (id, state)
    WHERE l.id = w.id AND l.state = 'open'
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::int8[]) THEN 0
            ELSE CAST('quipu: lost letters, ended ' || count(*) AS int) END
FROM ended
