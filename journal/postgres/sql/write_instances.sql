-- write_instances: moves activity ledgers by test-and-set of the whole value, digit group by digit group, since a carry can look legal (C3, C4). $1 jobs, $2 activities, $3 address keys, $4 before, $5 after, $6 result seqs, $7 codes.
WITH moved AS (
    UPDATE instances i
    SET ledger = w.after, result_seq = w.result_seq, code = w.code
    FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::int8[], $5::int8[], $6::int8[], $7::int8[])
        AS w (job, activity, dad, before, after, result_seq, code)
    WHERE i.job = w.job AND i.activity = w.activity AND i.dad = w.dad AND i.ledger = w.before
      AND (w.after / 100000000000000 = i.ledger / 100000000000000
           OR i.ledger / 100000000000000 = 0 AND w.after / 100000000000000 = 2)
      AND w.after / 1000000000000 % 100 >= i.ledger / 1000000000000 % 100
      AND w.after / 100000000000 % 10 >= i.ledger / 100000000000 % 10
      AND w.after / 10000000000 % 10 >= i.ledger / 10000000000 % 10
      AND w.after / 100000000 % 100 >= i.ledger / 100000000 % 100
      AND w.after % 100000000 >= i.ledger % 100000000
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost instances, moved ' || count(*) AS int) END
FROM moved
