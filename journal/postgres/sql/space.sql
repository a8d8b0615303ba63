-- name: space_lock
-- locks and reads the head of the space's chain, the session's user and the time (S7).
SELECT name, id, chain_seq, chain_hash, session_user::text, micros() FROM space FOR UPDATE

-- name: space_entries
-- reads the entries of the space's chain (S7).
SELECT seq, body, hash FROM space_entries ORDER BY seq

-- name: space_head
-- reads name, id and head of the space's chain (S7).
SELECT name, id, chain_seq, chain_hash FROM space

-- name: space_has
-- looks up an entry of the space's chain (J4). $1 seq, $2 hash. Returns a row if it is there.
SELECT 1 FROM space_entries WHERE seq = $1::int8 AND hash = $2::bytea

-- name: space_insert
-- adds an entry to the space's chain (S7). $1 seq, $2 body, $3 hash.
INSERT INTO space_entries (seq, body, hash) VALUES ($1::int8, $2::bytea, $3::bytea)

-- name: space_move
-- moves the head of the space's chain (S7). $1 seq, $2 hash.
UPDATE space SET chain_seq = $1::int8, chain_hash = $2::bytea WHERE single
