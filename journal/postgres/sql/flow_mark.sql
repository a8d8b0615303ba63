-- flow_mark: moves the time up to which scheduled starts were made, by test-and-set. $1 flow, $2 before, $3 after.
WITH moved AS (
    UPDATE flows SET scheduled = $3::int8 WHERE name = $1::text AND active AND scheduled = $2::int8 RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN 0 ELSE CAST('quipu: lost schedule, moved ' || count(*) AS int) END FROM moved
