-- jobs_ended: of which jobs nobody waits for an end any more: those that have ended, completion tasks included, tombstones, also those of keys used again, and quarantined ones. $1 ids.
SELECT id, state IN ('expired', 'quarantined') OR closed_seq IS NOT NULL AND tasks_seq IS NOT NULL FROM jobs WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT id, true FROM tombs WHERE id = ANY ($1::uuid[])
