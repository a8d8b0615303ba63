-- job_by_key: the id of the job that has a key; a tombstone is no job. $1 key.
SELECT id FROM jobs WHERE key = $1::text AND state <> 'expired'
