-- job_by_key: the job that has a key and its state; a tombstone is no job, and says so. $1 key.
SELECT id, state FROM jobs WHERE key = $1::text
