-- write_head: moves the head of one job's main chain by test-and-set, and nothing else (J8). $1 job, $2 seq before, $3 seq after, $4 hash.
WITH moved AS (
    UPDATE jobs SET head_seq = $3::int8, head_hash = $4::bytea WHERE id = $1::uuid AND head_seq = $2::int8 RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN 0 ELSE CAST('quipu: lost jobs, moved ' || count(*) AS int) END FROM moved
