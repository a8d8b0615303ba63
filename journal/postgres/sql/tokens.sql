-- name: token_find
-- reads the token with a hash that has not ended. $1 the hash.
SELECT name, role, made, ends FROM tokens WHERE hash = $1::bytea AND (ends IS NULL OR ends > micros())

-- name: token_hashes
-- lists the hashes of the tokens that have not ended. $1 how many at most.
SELECT hash FROM tokens WHERE ends IS NULL OR ends > micros() LIMIT $1::int8

-- name: token_list
-- lists the tokens, the oldest first. $1 how many at most.
SELECT name, role, made, ends FROM tokens ORDER BY made, name LIMIT $1::int8

-- name: token_add
-- stores a token, unless the name has one, or there are too many. $1 the hash, $2 name, $3 role, $4 in how many
-- microseconds it ends, null for never, $5 how many there may be. Returns a row if it is stored.
INSERT INTO tokens (hash, name, role, made, ends)
SELECT $1::bytea, $2::text, $3::text, micros(), micros() + $4::int8 WHERE (SELECT count(*) FROM tokens) < $5::int8
ON CONFLICT (name) DO NOTHING RETURNING 1

-- name: token_revoke
-- removes a token. $1 name. Returns a row if it was there.
DELETE FROM tokens WHERE name = $1::text RETURNING 1
