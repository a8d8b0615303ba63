-- load_lock_skip: locks the jobs that nobody holds, in the order of their ids (J3). $1 ids. Returns the ids that were locked.
SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
