-- name: hot
-- locks the jobs of hot states, and then the dispatch rows that decisions on them rest on, without waiting, and
-- compares them (W6): before a commit that does not move all of them, and after one that lost, to name the losers.
-- $1 jobs, $2 jobs of rows, $3 GUIDs, $4 revs. Changed or locked ones are an error with their places in the arrays
-- from 1.
WITH w AS MATERIALIZED (
    SELECT * FROM unnest({guard param 1}) WITH ORDINALITY AS w ({guard}, place)
), same AS MATERIALIZED (
    SELECT w.place FROM w JOIN jobs j ON j.id = w.id
    WHERE j.state = w.state AND j.semaphore = w.semaphore AND j.head_seq = w.seq AND j.head_hash = w.hash
    FOR NO KEY UPDATE OF j SKIP LOCKED
), r AS MATERIALIZED (
    SELECT * FROM unnest($2::uuid[], $3::uuid[], $4::int8[]) WITH ORDINALITY AS r (job, guid, rev, place)
), same_rows AS MATERIALIZED (
    SELECT r.place FROM r JOIN dispatches d ON d.job = r.job AND d.guid = r.guid
    WHERE d.rev = r.rev
    FOR UPDATE OF d SKIP LOCKED
)
SELECT CASE
    WHEN (SELECT count(*) FROM same) < cardinality({guard param 1})
    THEN CAST('quipu: lost hot jobs ' || (SELECT string_agg(w.place::text, ',') FROM w WHERE NOT EXISTS (SELECT FROM same WHERE same.place = w.place)) AS int)
    WHEN (SELECT count(*) FROM same_rows) < cardinality($2::uuid[])
    THEN CAST('quipu: lost hot rows ' || (SELECT string_agg(r.place::text, ',') FROM r WHERE NOT EXISTS (SELECT FROM same_rows s WHERE s.place = r.place)) AS int)
    ELSE 0 END

-- name: whole_instances
-- reads all instances of young and small jobs without receipts with open steps, each with the
-- entry of its result (W6). $1 jobs, $2 most entries, $3 most rows, $4 and $5 their span.
SELECT j.id, i.activity, i.dad_text, {instance:i},
       (SELECT {sealed e} FROM entries e
        WHERE e.n = i.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = nullif(i.result_seq, 0) AND {e within 4})
FROM jobs j CROSS JOIN LATERAL (SELECT * FROM instances i WHERE i.n = j.n AND {i within 4} OFFSET 0) AS i
WHERE j.id = ANY ($1::uuid[]) AND j.head_seq <= $2::int8
  AND (SELECT count(*) FROM (SELECT FROM dispatches d WHERE d.job = j.id LIMIT $3::int8 + 1) AS few) <= $3::int8
  AND NOT EXISTS (SELECT FROM receipts r WHERE r.n = j.n AND {r within 4} AND r.verdict = 'handled'
                    AND NOT (r.ledger / 1000000000 % 10 = 1 AND (r.ledger / 100000000000 = 0 OR r.ledger / 100000000 % 10 = 1)) OFFSET 0)

-- name: whole_rows
-- reads, locked, all dispatch rows of young and small jobs that this transaction has locked (W6, J8). $1 jobs, $2
-- most entries, $3 most rows.
SELECT {row:d}
FROM jobs j JOIN dispatches d ON d.job = j.id
WHERE j.id = ANY ($1::uuid[]) AND j.head_seq <= $2::int8
  AND (SELECT count(*) FROM (SELECT FROM dispatches d WHERE d.job = j.id LIMIT $3::int8 + 1) AS few) <= $3::int8
FOR NO KEY UPDATE OF j SKIP LOCKED
FOR UPDATE OF d
