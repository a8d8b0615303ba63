-- name: expire_default
-- how long closed jobs are kept whose flow does not say it (W11), in microseconds.
SELECT expire FROM space WHERE single

-- name: expire_default_set
-- changes that. $1 microseconds. Returns 1.
UPDATE space SET expire = $1::int8 WHERE single RETURNING 1

-- name: flow_lock
-- one change of a flow's versions at a time. $1 name.
SELECT pg_advisory_xact_lock(hashtextextended('quipu flow ' || current_schema() || ' ' || $1::text, 0))

-- name: flow_deploy
-- stores a version; it is active where no other is. $1 name, $2 version, $3 digest, $4 definition. Returns a row
-- when it is new.
INSERT INTO flows (name, version, digest, definition, active, deployed, scheduled)
SELECT $1::text, $2::text, $3::bytea, $4::bytea, NOT EXISTS (SELECT FROM flows WHERE name = $1::text AND active), micros(), micros()
ON CONFLICT DO NOTHING
RETURNING 1

-- name: flow_make_room
-- takes the active mark from all versions of a flow for one that is not there yet, and is to have it. $1 name, $2 version.
UPDATE flows SET active = false WHERE name = $1::text AND active
  AND NOT EXISTS (SELECT FROM flows WHERE name = $1::text AND version = $2::text)

-- name: flow_deactivate
-- takes the active mark from every other version. $1 name, $2 version.
UPDATE flows SET active = false WHERE name = $1::text AND active AND version <> $2::text
  AND EXISTS (SELECT FROM flows WHERE name = $1::text AND version = $2::text)

-- name: flow_activate
-- marks the version for new jobs; its scheduled starts begin now, unless it is active already. $1 name, $2 version.
-- Returns a row when there is one.
UPDATE flows SET active = true, scheduled = CASE WHEN active THEN scheduled ELSE micros() END
WHERE name = $1::text AND version = $2::text
RETURNING 1

-- name: flow_active
-- the version for new jobs. $1 name.
SELECT name, version, digest, definition FROM flows WHERE name = $1::text AND active

-- name: flow_read
-- one deployed version. $1 name, $2 version.
SELECT digest, definition FROM flows WHERE name = $1::text AND version = $2::text

-- name: flow_list
-- the deployed versions.
SELECT name, version, digest, active, deployed FROM flows ORDER BY name, deployed, version

-- name: flow_schedules
-- the active versions, with the time up to which scheduled starts were made, and the clock (J5).
SELECT name, version, digest, scheduled, (SELECT micros()) FROM flows WHERE active ORDER BY name

-- name: flow_mark
-- moves the time up to which scheduled starts were made, by test-and-set. $1 flow, $2 before, $3 after.
WITH moved AS (
    UPDATE flows SET scheduled = $3::int8 WHERE name = $1::text AND active AND scheduled = $2::int8 RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN 0 ELSE CAST('quipu: lost schedule, moved ' || count(*) AS int) END FROM moved
