-- load_lock: locks jobs in the order of their ids, waiting for each (J3). $1 ids. Returns the ids that exist.
SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE
