-- job_view: a job with the entries that closed it and that ran its completion tasks. $1 id.
SELECT j.id, j.key, j.generation, j.flow_name, j.flow_version, j.flow_digest, j.state, j.semaphore, j.head_seq, j.head_hash, j.started, j.trace,
       j.parent_space, j.parent_job, j.parent_activity, j.parent_dad, j.parent_leg1, j.parent_turn, j.parent_awaited,
       j.closed, j.tasks_seq IS NOT NULL, j.expires_at,
       (SELECT e.body FROM entries e WHERE e.job = j.id AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = j.closed_seq),
       (SELECT e.body FROM entries e WHERE e.job = j.id AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = j.tasks_seq)
FROM jobs j WHERE j.id = $1::uuid
