-- name: place_beat
-- raises the beat of the space (S13), if it goes on in this database and is at least as new as the mark that was
-- seen, and unless another process is just doing it. $1 id of the space, $2 epoch and $3 beat of the mark. Returns the
-- beat, and how many entries the space's own chain has.
UPDATE space SET beat = beat + 1
WHERE single IN (
    SELECT s.single FROM space s
    WHERE s.single AND s.id = $1::uuid AND s.epoch = $2::int8 AND s.beat >= $3::int8 AND s.halted IS NULL
      AND s.system = server_system() AND s.timeline = server_timeline()
    FOR UPDATE SKIP LOCKED)
RETURNING beat, chain_seq

-- name: place_halt
-- says in the space why nothing may be decided in this database, unless it says so already (S13). $1 epoch, $2 why.
UPDATE space SET halted = $2::text WHERE single AND epoch = $1::int8 AND halted IS NULL

-- name: place_promote
-- accepts a promotion that was allowed beforehand (S13), by test-and-set. $1 epoch, $2 timeline.
UPDATE space SET epoch = epoch + 1, timeline = server_timeline()
WHERE single AND epoch = $1::int8 AND timeline = $2::int8 AND promote AND halted IS NULL AND system = server_system()

-- name: place_accept
-- accepts this database for the space (S13), by test-and-set. $1 epoch, $2 the epoch that was seen outside, $3
-- microseconds from now within which jobs that begin are in doubt, null for no doubt. Returns the new epoch.
UPDATE space
SET epoch = greatest(epoch, $2::int8) + 1, system = server_system(), timeline = server_timeline(), halted = NULL,
    doubt = greatest(doubt, coalesce(micros() + $3::int8, 0))
WHERE single AND epoch = $1::int8
RETURNING epoch

-- name: place_allow
-- sets whether a promotion without a loss is accepted beforehand (S13). $1 whether. Returns a row if that is new.
UPDATE space SET promote = $1::bool WHERE single AND promote <> $1::bool RETURNING 1

-- name: place_requests
-- lists the open requests of open jobs, with the guarded effects of each that are started, by job. $1 limit. Returns
-- also how many requests there are.
SELECT j.key, j.flow_name, d.activity, d.dad, d.topic, d.guid, coalesce(e.key, ''), coalesce(e.name, ''), count(*) OVER ()
FROM dispatches d
JOIN LATERAL (SELECT * FROM jobs j WHERE j.id = d.job AND j.state = 'open' OFFSET 0) AS j ON true
LEFT JOIN LATERAL (
    SELECT * FROM effects e WHERE e.n = j.n AND e.request = d.guid AND e.state = 'started' AND e.class = 'guarded' OFFSET 0
) AS e ON true
WHERE d.kind = 'request'
ORDER BY j.n, d.guid, e.seq
LIMIT $1::int8
