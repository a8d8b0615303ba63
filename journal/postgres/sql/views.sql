-- name: job_by_key
-- finds the job that has a key, and its state; for a tombstone the state is expired. $1 key.
SELECT id, state FROM jobs WHERE key = $1::text AND next IS NULL

-- name: job_counts
-- counts the jobs by state, without those that another has resumed.
SELECT state, count(*) FROM jobs WHERE next IS NULL GROUP BY state

-- name: job_list
-- lists a page of jobs, newest first, without those that another has resumed. $1 states or none, $2 flow or '', $3 its
-- version or '', $4 prefix of the key, $5 the first start time, $6 and $7 start time and id of the last job of the
-- previous page, or of no job any more, $8 limit, $9 what an open job waits for, with the topic of that or '', or none;
-- $10 with $5 the first job that is looked at.
SELECT {job:j}, j.closed FROM jobs j
WHERE {between j} AND {fits j}
ORDER BY j.started DESC, j.id DESC
LIMIT $8::int8

-- name: job_edge
-- finds the job up to which a page is searched (O7), if there are so many: $1 the first start time, $2 and $3 as $6 and
-- $7 of job_list, $4 how many jobs are looked at.
SELECT j.started, j.id FROM jobs j
WHERE (j.started, j.id) < ($2::int8, $3::uuid) AND j.started >= $1::int8
ORDER BY j.started DESC, j.id DESC OFFSET $4::int8 - 1 LIMIT 1

-- name: job_list_standing
-- is job_list for states that have an index: it merges the newest jobs of each flow and state.
SELECT {job:j}, j.closed
FROM (SELECT DISTINCT name FROM flows WHERE name >= $2::text AND $2::text IN ('', name)) AS f CROSS JOIN unnest($1::text[]) AS s (state) CROSS JOIN LATERAL (
    SELECT * FROM jobs t
    WHERE t.flow_name = f.name AND t.state = s.state AND CASE WHEN t.state IN ('open', 'failed', 'interrupted', 'quarantined') THEN true END
      AND {between t} AND {narrow t}
    ORDER BY t.started DESC, t.id DESC LIMIT $8::int8
) AS j
ORDER BY j.started DESC, j.id DESC
LIMIT $8::int8

-- name: job_edge_standing
-- is job_edge among the jobs of the states $5 and the flow $6 or ''.
SELECT j.started, j.id
FROM (SELECT DISTINCT name FROM flows WHERE name >= $6::text AND $6::text IN ('', name)) AS f CROSS JOIN unnest($5::text[]) AS s (state) CROSS JOIN LATERAL (
    SELECT t.started, t.id FROM jobs t
    WHERE t.flow_name = f.name AND t.state = s.state AND CASE WHEN t.state IN ('open', 'failed', 'interrupted', 'quarantined') THEN true END
      AND (t.started, t.id) < ($2::int8, $3::uuid) AND t.started >= $1::int8
    ORDER BY t.started DESC, t.id DESC LIMIT $4::int8
) AS j
ORDER BY j.started DESC, j.id DESC OFFSET $4::int8 - 1 LIMIT 1

-- name: job_list_tagged
-- is job_list for jobs that have all of the tags $11. It reads all of them by the index on tags, which is fast for rare
-- tags. OFFSET 0 keeps the planner from walking by start time instead. It runs after bitmap.
SELECT {job:j}, j.closed
FROM (SELECT * FROM jobs t WHERE t.tags <> '' AND string_to_array(t.tags, E'\n') @> $11::text[] OFFSET 0) j
WHERE {between j} AND {fits j}
ORDER BY j.started DESC, j.id DESC
LIMIT $8::int8

-- name: job_list_children
-- is job_list for the children of the job $12, by their index, that have all of the tags $11.
SELECT {job:j}, j.closed FROM jobs j
WHERE j.parent_job = $12::uuid AND {between j} AND {fits j}
  AND (cardinality($11::text[]) = 0 OR string_to_array(j.tags, E'\n') @> $11::text[])
ORDER BY j.started DESC, j.id DESC
LIMIT $8::int8

-- name: job_counted
-- counts by state what job_list gives, among the newest $8 jobs of the time range, and says how many these were.
SELECT j.state, count(*) FILTER (WHERE {fits j}), count(*)
FROM (SELECT * FROM jobs t WHERE {between t} ORDER BY t.started DESC, t.id DESC LIMIT $8::int8) j
GROUP BY j.state

-- name: job_counted_tagged
-- is job_counted among $8 jobs that have all of the tags $11. It runs after bitmap.
SELECT j.state, count(*) FILTER (WHERE {fits j}), count(*)
FROM (SELECT * FROM (SELECT * FROM jobs u WHERE u.tags <> '' AND string_to_array(u.tags, E'\n') @> $11::text[] OFFSET 0) t
      WHERE {between t} LIMIT $8::int8) j
GROUP BY j.state

-- name: job_counted_children
-- is job_counted among the newest $8 children of the job $12 that have all of the tags $11.
SELECT j.state, count(*) FILTER (WHERE {fits j}), count(*)
FROM (SELECT * FROM jobs t
      WHERE t.parent_job = $12::uuid AND {between t} AND (cardinality($11::text[]) = 0 OR string_to_array(t.tags, E'\n') @> $11::text[])
      ORDER BY t.started DESC, t.id DESC LIMIT $8::int8) j
GROUP BY j.state

-- name: job_view
-- reads a job with the entries that closed it and that ran its completion tasks. $1 id.
SELECT {job:j},
       j.closed, j.tasks_seq IS NOT NULL, j.expires_at,
       (SELECT {sealed e} FROM entries e WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = j.closed_seq),
       (SELECT {sealed e} FROM entries e WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = j.tasks_seq), j.next
FROM jobs j WHERE j.id = $1::uuid AND {keyed j}

-- name: jobs_awaited
-- says what jobs wait for (O7), of $2 messages, $2 waits, $2 children and $2 effects of each alone: a list may have any
-- number. $1 ids. A child that has not begun names no activity. The request of a function that is asleep says nothing:
-- what the function waits for has a row of its own. An effect is one that a run left open which is gone, and no other run
-- may begin before it has certainly ended (E4).
SELECT i.id, w.*
FROM unnest($1::uuid[]) AS i (id) CROSS JOIN LATERAL (
    SELECT m.kind, coalesce(m.held, ''), m.activity, m.topic, coalesce(min(m.holder), ''), max(m.attempt), coalesce(min(m.next_at), 0), count(*),
           max(CASE WHEN m.kind = 'request' THEN m.runs - (m.holder IS NOT NULL)::int ELSE 0 END), '', '', NULL::uuid
    FROM (SELECT * FROM dispatches r WHERE r.job = i.id LIMIT $2::int8) AS m
    WHERE m.kind <> 'request' OR coalesce(m.held, m.holder, '') <> '' OR m.next_at IS NOT NULL
    GROUP BY m.kind, coalesce(m.held, ''), m.activity, m.topic
    UNION ALL
    SELECT 'effect', '', m.activity, e.name, e.holder, 0, e.until, 1, 0, '', e.class, m.guid
    FROM (SELECT * FROM dispatches r WHERE r.job = i.id LIMIT $2::int8) AS m
    CROSS JOIN LATERAL (
        SELECT * FROM effects o
        WHERE o.n = (SELECT j.n FROM jobs j WHERE j.id = i.id) AND o.request = m.guid AND o.state = 'started' AND o.turn = m.turn AND o.until > micros()
        ORDER BY o.until DESC LIMIT 1
    ) AS e
    WHERE m.kind = 'request' AND m.held IS NULL AND m.holder IS NULL AND m.effects_seq > 0
    UNION ALL
    SELECT 'signal', '', s.activity, s.topic, '', 0, 0, 1, 0, s.key, '', NULL
    FROM (SELECT * FROM waits x WHERE x.job = i.id LIMIT $2::int8) AS s
    UNION ALL
    SELECT 'child', '', c.parent_activity, '', '', 0, 0, count(*), 0, '', '', NULL
    FROM (SELECT * FROM jobs x WHERE x.parent_job = i.id ORDER BY x.started DESC, x.id DESC LIMIT $2::int8) AS c
    WHERE c.parent_awaited AND c.state IN ('open', 'quarantined')
    GROUP BY c.parent_activity
    UNION ALL
    SELECT 'child', '', '', '', '', 0, coalesce(min(o.next_at), 0), count(*), 0, '', '', NULL
    FROM (SELECT * FROM dispatches r WHERE r.sender = i.id LIMIT $2::int8) AS o
    HAVING count(*) > 0
) AS w

-- name: flows_failing
-- counts of each flow the jobs that failed since $1 and that nobody has resumed, among the $2 that began last of those
-- that failed, and says when the last of them did.
SELECT f.name, count(*), max(j.closed)
FROM (SELECT DISTINCT name FROM flows WHERE name >= '') AS f CROSS JOIN LATERAL (
    SELECT t.closed, t.next FROM jobs t
    WHERE t.flow_name = f.name AND t.state = 'failed' AND CASE WHEN t.state IN ('open', 'failed', 'interrupted', 'quarantined') THEN true END
    ORDER BY t.started DESC, t.id DESC LIMIT $2::int8
) AS j
WHERE j.closed >= $1::int8 AND j.next IS NULL
GROUP BY f.name ORDER BY max(j.closed) DESC, f.name

-- name: jobs_after
-- lists a page of job ids in their order. $1 the last of the previous page, $2 limit.
SELECT id FROM jobs j WHERE id > $1::uuid AND {keyed j} ORDER BY id LIMIT $2::int8

-- name: jobs_ended
-- says of jobs whether waiting for them is over: they have ended, completion tasks included, or are tombstones or
-- quarantined. $1 ids.
SELECT id, state IN ('expired', 'quarantined') OR closed_seq IS NOT NULL AND tasks_seq IS NOT NULL FROM jobs WHERE id = ANY ($1::uuid[])

-- name: jobs_outcome
-- reads how jobs ended, with the entry that closed each, and the one that ran its completion tasks if it is
-- another, and their numbers. $1 ids, $2 and $3 their span: the entries of jobs with other numbers are not read.
SELECT j.id, j.key, j.state, j.state = 'expired' OR j.tasks_seq IS NOT NULL,
       (SELECT {sealed e} FROM entries e WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000'
        AND e.seq = CASE WHEN j.tasks_seq IS NOT NULL THEN j.closed_seq END AND {e within 2}),
       (SELECT {sealed e} FROM entries e WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000'
        AND e.seq = NULLIF(j.tasks_seq, j.closed_seq) AND {e within 2}),
       j.n
FROM jobs j WHERE j.id = ANY ($1::uuid[])

-- name: jobs_known
-- finds the ids that are jobs, in their order. $1 ids.
SELECT id FROM jobs j WHERE id = ANY ($1::uuid[]) AND {keyed j} ORDER BY id

-- name: view_rows
-- reads all dispatch rows of a job, and the starts of its children that have not begun. $1 job.
SELECT {row:d}
FROM (SELECT * FROM dispatches WHERE job = $1::uuid UNION ALL SELECT * FROM dispatches WHERE sender = $1::uuid) AS d
ORDER BY d.origin, d.guid

-- name: view_instances
-- reads the instances of a job. $1 job, $2 also rows that only point to an output: of those a long list has one for
-- each element.
SELECT activity, dad_text, {instance}
FROM instances WHERE n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid) AND ($2::bool OR ledger <> 0)
ORDER BY activity COLLATE "C", dad_text COLLATE "C"
