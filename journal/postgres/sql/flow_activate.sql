-- flow_activate: marks the version for new jobs; its scheduled starts begin now, unless it is active already. $1 name, $2 version. Returns a row when there is one.
UPDATE flows SET active = true, scheduled = CASE WHEN active THEN scheduled ELSE micros() END
WHERE name = $1::text AND version = $2::text
RETURNING 1
