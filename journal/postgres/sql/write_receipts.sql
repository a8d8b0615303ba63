-- write_receipts: sets markers of GUID ledgers by test-and-set of the whole value, digit by digit, the ordinal unchanged (C3, C4). $1 jobs, $2 GUIDs, $3 before, $4 after.
WITH moved AS (
    UPDATE receipts r
    SET ledger = w.after
    FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[]) AS w (job, guid, before, after)
    WHERE r.job = w.job AND r.guid = w.guid AND r.ledger = w.before AND r.verdict = 'handled'
      AND w.after % 100000000 = r.ledger % 100000000
      AND w.after / 100000000000 = r.ledger / 100000000000
      AND w.after / 10000000000 % 10 >= r.ledger / 10000000000 % 10
      AND w.after / 1000000000 % 10 >= r.ledger / 1000000000 % 10
      AND w.after / 100000000 % 10 >= r.ledger / 100000000 % 10
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost receipts, moved ' || count(*) AS int) END
FROM moved
