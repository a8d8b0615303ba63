-- name: repair_instances
-- deletes instances that an operator's repair inserts anew, or that must not stand (S11). The job is locked, and compared
-- by its guard. So with the statements below. $1 jobs, $2 activities, $3 addresses. The key of a
-- damaged row may not be that of its address.
DELETE FROM instances i
USING (SELECT w.*, j.n FROM unnest($1::uuid[], $2::text[], $3::text[]) AS w (job, activity, dad) JOIN jobs j ON j.id = w.job OFFSET 0) AS w
WHERE i.n = w.n AND i.activity = w.activity AND i.dad_text = w.dad

-- name: repair_receipts
-- deletes receipts. $1 jobs, $2 GUIDs.
DELETE FROM receipts r
USING (SELECT w.*, j.n FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid) JOIN jobs j ON j.id = w.job OFFSET 0) AS w
WHERE r.n = w.n AND r.guid = w.guid

-- name: repair_effects
-- deletes effects, unless their state or fence has changed since they were read, which is an error. $1 jobs, $2 keys,
-- $3 states, $4 fences.
WITH gone AS (
    DELETE FROM effects e
    USING (SELECT w.*, j.n FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::int8[]) AS w (job, key, state, fence)
           JOIN jobs j ON j.id = w.job OFFSET 0) AS w
    WHERE e.n = w.n AND e.key = w.key AND e.state = w.state AND e.fence = w.fence
    RETURNING 1
)
SELECT {changed effects 1} FROM gone

-- name: repair_resolved
-- deletes resolved waits. $1 jobs, $2 GUIDs.
DELETE FROM resolved_waits t
USING (SELECT w.*, j.n FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid) JOIN jobs j ON j.id = w.job OFFSET 0) AS w
WHERE t.n = w.n AND t.guid = w.guid
