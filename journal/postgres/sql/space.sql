-- name: space_lock
-- locks and reads the head of the space's chain, the session's user and the time (S7).
SELECT name, id, chain_seq, chain_hash, session_user::text, micros() FROM space FOR UPDATE

-- name: space_entries
-- reads the entries of the space's chain (S7).
SELECT seq, body, hash FROM space_entries ORDER BY seq

-- name: space
-- reads the space: its name and id, and the head of its chain (S7); its epoch (T4); how long closed jobs are kept whose
-- flow does not say it, in microseconds (W11); how many stray dead letters retention has dropped, and whether it keeps
-- digests of keys (S15).
SELECT name, id, chain_seq, chain_hash, epoch, expire, dropped, private FROM space

-- name: space_has
-- looks up an entry of the space's chain (J4). $1 seq, $2 hash. Returns a row if it is there.
SELECT 1 FROM space_entries WHERE seq = $1::int8 AND hash = $2::bytea

-- name: space_insert
-- adds an entry to the space's chain (S7). $1 seq, $2 body, $3 hash.
INSERT INTO space_entries (seq, body, hash) VALUES ($1::int8, $2::bytea, $3::bytea)

-- name: space_move
-- moves the head of the space's chain (S7). $1 seq, $2 hash.
UPDATE space SET chain_seq = $1::int8, chain_hash = $2::bytea WHERE single
