-- effect_put: writes an effect; a result is written once (E5): what has one is an error. $1 job, $2 key, $3 request, $4 seq, $5 name, $6 class, $7 n, $8 state, $9 result, $10 error, $11 fence, $12 holder, $13 turn, $14 until.
WITH put AS (
    INSERT INTO effects AS e (job, key, request, seq, name, class, n, state, result, error, fence, holder, turn, until)
    VALUES ($1::uuid, $2::bytea, $3::uuid, $4::int8, $5::text, $6::text, $7::int8, $8::text, $9::bytea, $10::bytea,
            $11::int8, $12::text, $13::int8, $14::int8)
    ON CONFLICT (job, key) DO UPDATE
    SET state = excluded.state, result = excluded.result, error = excluded.error,
        fence = excluded.fence, holder = excluded.holder, turn = excluded.turn, until = excluded.until
    WHERE e.state = 'started'
    RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN 0 ELSE CAST('quipu: lost effects, put ' || count(*) AS int) END FROM put
