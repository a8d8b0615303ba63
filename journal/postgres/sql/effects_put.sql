-- effects_put: writes effects, each once; a result is written once (E5): what has one is an error. $1 jobs, $2 keys, $3 requests, $4 seqs of the first entries, $5 names, $6 classes, $7 n, $8 states, $9 results, $10 errors, $11 fences, $12 holders, $13 turns, $14 ends of tries, $15 positions.
WITH put AS (
    INSERT INTO effects AS e (job, key, request, seq, name, class, n, state, result, error, fence, holder, turn, until, position)
    SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::uuid[], $4::int8[], $5::text[], $6::text[], $7::int8[], $8::text[],
                         $9::bytea[], $10::bytea[], $11::int8[], $12::text[], $13::int8[], $14::int8[], $15::text[])
    ON CONFLICT (key, job) DO UPDATE
    SET state = excluded.state, result = excluded.result, error = excluded.error,
        fence = excluded.fence, holder = excluded.holder, turn = excluded.turn, until = excluded.until
    WHERE e.state = 'started'
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost effects, put ' || count(*) AS int) END
FROM put
