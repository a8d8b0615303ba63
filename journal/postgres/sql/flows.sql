-- name: expire_default_set
-- sets how long closed jobs are kept whose flow does not say it (W11). $1 microseconds. Returns a row if it was another one.
UPDATE space SET expire = $1::int8 WHERE single AND expire <> $1::int8 RETURNING 1

-- name: flow_lock
-- lets one transaction at a time change the versions of flows. An advisory lock could be held by any login (S8).
LOCK TABLE flows IN SHARE ROW EXCLUSIVE MODE

-- name: flow_deploy
-- stores a version, active if the flow has no active one. Its scheduled starts go on where those of the flow stand; of
-- a new flow they begin now. $1 name, $2 version, $3 digest, $4 definition. Returns a row if it is new.
INSERT INTO flows (name, version, digest, definition, active, deployed, scheduled)
SELECT $1::text, $2::text, $3::bytea, $4::bytea, NOT EXISTS (SELECT FROM flows WHERE name = $1::text AND active), micros(),
  COALESCE((SELECT max(scheduled) FROM flows WHERE name = $1::text), micros())
ON CONFLICT DO NOTHING
RETURNING 1

-- name: flow_make_room
-- deactivates every version but the given one, which is to be active. $1 name, $2 version, $3 whether only if that is
-- there, or only if it is new.
UPDATE flows SET active = false WHERE name = $1::text AND active AND version <> $2::text
  AND EXISTS (SELECT FROM flows WHERE name = $1::text AND version = $2::text) = $3::bool

-- name: flow_activate
-- activates the version for new jobs. Its scheduled starts go on where those of the flow stand: only the active
-- version's are moved, and only forward, so that is the latest of all. $1 name, $2 version. Returns a row if the version
-- exists.
UPDATE flows SET active = true, scheduled = (SELECT max(f.scheduled) FROM flows f WHERE f.name = $1::text)
WHERE name = $1::text AND version = $2::text
RETURNING 1

-- name: flow_active
-- reads the version for new jobs. $1 name.
SELECT name, version, digest, definition FROM flows WHERE name = $1::text AND active

-- name: flow_read
-- reads one deployed version, and whether new jobs take it. $1 name, $2 version.
SELECT digest, definition, active FROM flows WHERE name = $1::text AND version = $2::text

-- name: flow_list
-- lists the deployed versions.
SELECT name, version, digest, active, deployed FROM flows ORDER BY name, deployed, version

-- name: flow_schedules
-- lists the active versions, with the time up to which their scheduled starts were made, and the clock (J5).
SELECT name, version, digest, scheduled, (SELECT micros()) FROM flows WHERE active ORDER BY name

-- name: flow_mark
-- moves that time forward by test-and-set. $1 flow, $2 before, $3 after.
WITH moved AS (
    UPDATE flows SET scheduled = $3::int8 WHERE name = $1::text AND active AND scheduled = $2::int8 AND $3::int8 >= scheduled
    RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN 0 ELSE CAST('quipu: lost schedule, moved ' || count(*) AS int) END FROM moved
