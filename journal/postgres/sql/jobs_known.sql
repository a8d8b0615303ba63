-- jobs_known: which of the ids are jobs, in their order. $1 ids.
SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id
