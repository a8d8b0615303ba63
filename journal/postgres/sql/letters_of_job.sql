-- letters_of_job: the dead letters of a job, oldest first. $1 job.
SELECT l.id, l.job, l.guid, l.kind, l.activity, l.dad, l.reason, l.message, l.ledger, l.at, l.state, coalesce(j.key, '')
FROM dead_letters l LEFT JOIN jobs j ON j.id = l.job
WHERE l.job = $1::uuid
ORDER BY l.id
