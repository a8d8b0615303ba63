-- expire_woken: removes records of pauses of tombstones. $1 jobs, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM woken WHERE ctid = ANY (ARRAY(SELECT ctid FROM woken WHERE job = ANY ($1::uuid[]) LIMIT $2::int8)) RETURNING 1
)
SELECT count(*) FROM gone
