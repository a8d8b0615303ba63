-- job_list: a page of jobs, newest first. $1 state or '', $2 flow or '', $3 prefix of the key, $4 and $5 start time and id of the last job of the page before, $6 limit.
SELECT j.id, j.key, j.generation, j.flow_name, j.flow_version, j.flow_digest, j.state, j.semaphore, j.head_seq, j.head_hash, j.started, j.trace,
       j.parent_space, j.parent_job, j.parent_activity, j.parent_dad, j.parent_leg1, j.parent_turn, j.parent_awaited,
       j.closed
FROM jobs j
WHERE ($1::text = '' OR j.state = $1::text) AND ($2::text = '' OR j.flow_name = $2::text)
  AND starts_with(j.key, $3::text) AND (j.started, j.id) < ($4::int8, $5::uuid)
ORDER BY j.started DESC, j.id DESC
LIMIT $6::int8
