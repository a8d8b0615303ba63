-- expire_dead_letters: removes dead letters of tombstones. $1 jobs, $2 limit. Returns their number.
WITH gone AS (
    DELETE FROM dead_letters WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letters WHERE job = ANY ($1::uuid[]) LIMIT $2::int8)) RETURNING 1
)
SELECT count(*) FROM gone
