-- write_instances: moves activity ledgers by test-and-set of the whole value, digit group by digit group, since a carry can look legal (C3, C4). $1 jobs, $2 activities, $3 address keys, $4 joins, $5 after, $6 result seqs, $7 codes, $8 Leg1 GUIDs, $9 open elements, $10 counts, $11 sizes, $12 turns, $13 tries, $14 children, $15 before.
WITH moved AS (
    UPDATE instances i
    SET ledger = w.after, is_join = i.is_join OR w.is_join, result_seq = w.result_seq, code = w.code, leg1 = w.leg1,
        open = w.open, count = w.count, size = w.size, turn = w.turn, try = w.try, child = w.child
    FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::bool[], $5::int8[], $6::int8[], $7::int8[], $8::uuid[],
                $9::int8[], $10::int8[], $11::int8[], $12::int8[], $13::int8[], $14::uuid[], $15::int8[])
        AS w (job, activity, dad, is_join, after, result_seq, code, leg1, open, count, size, turn, try, child, before)
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
