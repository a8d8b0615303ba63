-- load_all_waits: every open wait of jobs (C15). $1 jobs.
SELECT w.job, w.guid, w.activity, w.dad, w.topic, w.key, w.repeat, w.max_age, w.count, w.since, w.origin, w.request
FROM waits w WHERE w.job = ANY ($1::uuid[])
