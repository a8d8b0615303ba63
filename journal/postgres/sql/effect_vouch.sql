-- effect_vouch: an operator confirms the result of a completed effect (3.3). $1 job, $2 key.
WITH put AS (
    UPDATE effects SET vouched = true WHERE key = $2::bytea AND job = $1::uuid AND state = 'completed' RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN 0 ELSE CAST('quipu: lost effects, vouched ' || count(*) AS int) END FROM put
