-- load_jobs: the headers of jobs (J2). $1 ids.
SELECT id, key, generation, flow_name, flow_version, flow_digest, state, semaphore, head_seq, head_hash, started, trace,
       parent_space, parent_job, parent_activity, parent_dad, parent_leg1, parent_turn, parent_awaited
FROM jobs WHERE id = ANY ($1::uuid[])
