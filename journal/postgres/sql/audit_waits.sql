-- audit_waits: all open waits of a job. $1 job.
SELECT w.job, w.guid, w.activity, w.dad, w.topic, w.key, w.repeat, w.max_age, w.count, w.since, w.origin, w.request
FROM waits w WHERE w.job = $1::uuid ORDER BY w.since, w.guid
