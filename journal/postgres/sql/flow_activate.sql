-- flow_activate: marks the version for new jobs. $1 name, $2 version. Returns a row when there is one.
UPDATE flows SET active = true WHERE name = $1::text AND version = $2::text RETURNING 1
