-- name: job_by_key
-- the job that has a key and its state; a tombstone is no job, and says so. $1 key.
SELECT id, state FROM jobs WHERE key = $1::text AND next IS NULL

-- name: job_counts
-- the number of jobs by state, but for those that another has resumed.
SELECT state, count(*) FROM jobs WHERE next IS NULL GROUP BY state

-- name: job_list
-- a page of jobs, newest first, but for those that another has resumed: their next, coalesced so that no
-- index of what has none is read whole. $1 state or '', $2 flow or '', $3 prefix of the key, $4 and $5 start time and id of
-- the last job of the page before, $6 limit.
SELECT {job:j},
       j.closed
FROM jobs j
WHERE coalesce(j.next, j.id) = j.id AND ($1::text = '' OR j.state = $1::text) AND ($2::text = '' OR j.flow_name = $2::text)
  AND starts_with(j.key, $3::text) AND (j.started, j.id) < ($4::int8, $5::uuid)
ORDER BY j.started DESC, j.id DESC
LIMIT $6::int8

-- name: job_list_tagged
-- job_list of jobs that have all of the tags $7: by their index, so that what few jobs have is found at once.
SELECT {job:j},
       j.closed
FROM jobs j
WHERE coalesce(j.next, j.id) = j.id AND j.tags <> '' AND string_to_array(j.tags, E'\n') @> $7::text[]
  AND ($1::text = '' OR j.state = $1::text) AND ($2::text = '' OR j.flow_name = $2::text)
  AND starts_with(j.key, $3::text) AND (j.started, j.id) < ($4::int8, $5::uuid)
ORDER BY j.started DESC, j.id DESC
LIMIT $6::int8

-- name: job_view
-- a job with the entries that closed it and that ran its completion tasks. $1 id.
SELECT {job:j},
       j.closed, j.tasks_seq IS NOT NULL, j.expires_at,
       (SELECT e.body FROM entries e WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = j.closed_seq),
       (SELECT e.body FROM entries e WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = j.tasks_seq), j.next
FROM jobs j WHERE j.id = $1::uuid

-- name: jobs_after
-- a page of job ids in their order. $1 the last of the page before, $2 limit.
SELECT id FROM jobs WHERE id > $1::uuid ORDER BY id LIMIT $2::int8

-- name: jobs_ended
-- of which jobs nobody waits for an end any more: those that have ended, completion tasks included, tombstones, also those of keys used again, and quarantined ones. $1 ids.
SELECT id, state IN ('expired', 'quarantined') OR closed_seq IS NOT NULL AND tasks_seq IS NOT NULL FROM jobs WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT id, true FROM tombstones WHERE id = ANY ($1::uuid[])

-- name: jobs_outcome
-- how jobs ended, with the entry that closed each, and the one that ran its completion tasks where that is another. $1 ids.
SELECT j.id, j.key, j.state, j.state = 'expired' OR j.tasks_seq IS NOT NULL,
       (SELECT e.body FROM entries e WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000'
        AND e.seq = CASE WHEN j.tasks_seq IS NOT NULL THEN j.closed_seq END),
       (SELECT e.body FROM entries e WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000'
        AND e.seq = NULLIF(j.tasks_seq, j.closed_seq))
FROM jobs j WHERE j.id = ANY ($1::uuid[])
UNION ALL
SELECT t.id, t.key, 'expired', true, NULL, NULL FROM tombstones t WHERE t.id = ANY ($1::uuid[])

-- name: jobs_known
-- which of the ids are jobs, in their order. $1 ids.
SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id

-- name: view_rows
-- all dispatch rows of a job, and the starts that it ordered and that have not begun. $1 job.
SELECT {row:d}
FROM (SELECT * FROM dispatches WHERE job = $1::uuid UNION ALL SELECT * FROM dispatches WHERE sender = $1::uuid) AS d
ORDER BY d.origin, d.guid
