-- flow_deploy: stores a version; the first of its flow is active. $1 name, $2 version, $3 digest, $4 definition. Returns a row when it is new.
INSERT INTO flows (name, version, digest, definition, active, deployed, scheduled)
SELECT $1::text, $2::text, $3::bytea, $4::bytea, NOT EXISTS (SELECT FROM flows WHERE name = $1::text), micros(), micros()
ON CONFLICT DO NOTHING
RETURNING 1
