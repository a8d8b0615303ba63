-- jobs_ended: which jobs have ended, completion tasks included; tombstones have, also those of keys used again. $1 ids.
SELECT id, state = 'expired' OR closed_seq IS NOT NULL AND tasks_seq IS NOT NULL FROM jobs WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT id, true FROM tombs WHERE id = ANY ($1::uuid[])
