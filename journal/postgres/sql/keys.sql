-- name: keys_may
-- reads whether the space signs, the time, and what of its keys this login may read (S1): the secrets, the keys of
-- topics.
SELECT signed, micros(), has_table_privilege('keys', 'SELECT'), has_table_privilege('topic_keys', 'SELECT')
FROM space WHERE single

-- name: keys_roots
-- reads the root secrets, the oldest first.
SELECT id, secret, signs, ends FROM keys ORDER BY id

-- name: keys_topics
-- reads the keys of topics, the oldest first.
SELECT topic, id, key, signs, ends FROM topic_keys ORDER BY id, topic

-- name: keys_first
-- makes the first root secret of a space. $1 the secret.
INSERT INTO keys (id, secret, made, signs) VALUES (1, $1::bytea, micros(), micros()) ON CONFLICT DO NOTHING

-- name: keys_end
-- lets the keys that hold end. $1 how long they still hold, in microseconds.
UPDATE keys SET ends = micros() + $1::int8 WHERE ends IS NULL OR ends > micros() + $1::int8

-- name: keys_end_topics
-- does the same for what was derived from them. $1 as above.
UPDATE topic_keys SET ends = micros() + $1::int8 WHERE ends IS NULL OR ends > micros() + $1::int8

-- name: keys_add
-- adds a root secret. $1 the secret, $2 in how many microseconds it signs. Returns its id.
INSERT INTO keys (id, secret, made, signs) SELECT max(id) + 1, $1::bytea, micros(), micros() + $2::int8 FROM keys
RETURNING id

-- name: keys_put
-- stores keys of topics that are not stored yet. $1 topics, $2 ids, $3 keys, $4 from when they sign,
-- $5 when they end, null for never.
INSERT INTO topic_keys (topic, id, key, signs, ends)
SELECT * FROM unnest($1::text[], $2::int8[], $3::bytea[], $4::int8[], $5::int8[])
ON CONFLICT DO NOTHING

-- name: keys_known
-- reads the topics that have keys.
SELECT DISTINCT topic FROM topic_keys ORDER BY topic

-- name: keys_switch
-- lets the space sign its messages, or not (S3). $1 whether. Returns a row if that is new.
UPDATE space SET signed = $1::bool WHERE single AND signed <> $1::bool RETURNING 1
