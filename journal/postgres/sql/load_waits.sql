-- load_waits: open waits by primary key. $1 jobs, $2 GUIDs.
SELECT w.job, w.guid, w.activity, w.dad, w.topic, w.key, w.repeat, w.max_age, w.count, w.since, w.origin, w.request
FROM unnest($1::uuid[], $2::uuid[]) AS a (job, guid)
JOIN waits w ON w.job = a.job AND w.guid = a.guid
