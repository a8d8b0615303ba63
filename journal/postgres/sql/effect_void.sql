-- effect_void: an operator says that a completed effect was not done (3.3), by test-and-set. $1 job, $2 key, $3 error.
WITH put AS (
    UPDATE effects SET state = 'not_done', result = NULL, error = $3::bytea, vouched = false
    WHERE key = $2::bytea AND job = $1::uuid AND state = 'completed' RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN 0 ELSE CAST('quipu: lost effects, voided ' || count(*) AS int) END FROM put
