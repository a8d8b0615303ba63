-- name: place_beat
-- raises the beat of the space, unless another process is just doing it (S13). $1 epoch. Returns the beat.
UPDATE space SET beat = beat + 1
WHERE single IN (SELECT s.single FROM space s WHERE s.single AND s.epoch = $1::int8 AND s.halted IS NULL FOR UPDATE SKIP LOCKED)
RETURNING beat

-- name: place_halt
-- says in the space why nothing may be decided in this database, unless it says so already (S13). $1 epoch, $2 why.
UPDATE space SET halted = $2::text WHERE single AND epoch = $1::int8 AND halted IS NULL

-- name: place_promote
-- accepts a promotion that was allowed beforehand (S13), by test-and-set. $1 epoch, $2 timeline.
UPDATE space SET epoch = epoch + 1, timeline = server_timeline()
WHERE single AND epoch = $1::int8 AND timeline = $2::int8 AND promote AND halted IS NULL AND system = server_system()
