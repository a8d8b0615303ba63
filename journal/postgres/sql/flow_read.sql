-- flow_read: one deployed version. $1 name, $2 version.
SELECT digest, definition FROM flows WHERE name = $1::text AND version = $2::text
