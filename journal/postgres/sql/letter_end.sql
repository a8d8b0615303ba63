-- letter_end: ends an open dead letter by test-and-set (E10). $1 id, $2 state.
WITH ended AS (
    UPDATE dead_letters SET state = $2::text WHERE id = $1::int8 AND state = 'open' RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN 0 ELSE CAST('quipu: lost letters, ended ' || count(*) AS int) END FROM ended
