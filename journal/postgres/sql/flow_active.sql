-- flow_active: the version for new jobs. $1 name.
SELECT name, version, digest, definition FROM flows WHERE name = $1::text AND active
