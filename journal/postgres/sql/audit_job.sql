-- audit_job: a job with the digest under which its flow version is deployed. $1 id.
SELECT j.id, j.key, j.generation, j.flow_name, j.flow_version, j.flow_digest, j.state, j.semaphore, j.head_seq, j.head_hash, j.started, j.trace,
       j.parent_space, j.parent_job, j.parent_activity, j.parent_dad, j.parent_leg1, j.parent_turn, j.parent_awaited,
       f.digest
FROM jobs j LEFT JOIN flows f ON f.name = j.flow_name AND f.version = j.flow_version
WHERE j.id = $1::uuid
