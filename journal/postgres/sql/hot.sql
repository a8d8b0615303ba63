-- name: hot_jobs
-- locks the jobs of hot states without waiting, and compares them (W6). $1 ids, $2 states, $3 semaphores, $4 seqs,
-- $5 hashes. Changed or locked jobs are an error with their places in the arrays from 1.
WITH w AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::int8[], $4::int8[], $5::bytea[]) WITH ORDINALITY
        AS w (id, state, semaphore, seq, hash, n)
), same AS MATERIALIZED (
    SELECT w.n FROM w JOIN jobs j ON j.id = w.id
    WHERE j.state = w.state AND j.semaphore = w.semaphore AND j.head_seq = w.seq AND j.head_hash = w.hash
    FOR NO KEY UPDATE OF j SKIP LOCKED
)
SELECT CASE WHEN (SELECT count(*) FROM same) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost hot jobs ' || (SELECT string_agg(w.n::text, ',') FROM w WHERE NOT EXISTS (SELECT FROM same WHERE same.n = w.n)) AS int) END

-- name: hot_rows
-- locks, without waiting, the dispatch rows that decisions on hot states move or delete, and compares their revs
-- (W6). $1 jobs, $2 GUIDs, $3 revs. Errors are as in hot_jobs.
WITH w AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int8[]) WITH ORDINALITY AS w (job, guid, rev, n)
), same AS MATERIALIZED (
    SELECT w.n FROM w JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
    WHERE d.rev = w.rev
    FOR UPDATE OF d SKIP LOCKED
)
SELECT CASE WHEN (SELECT count(*) FROM same) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost hot rows ' || (SELECT string_agg(w.n::text, ',') FROM w WHERE NOT EXISTS (SELECT FROM same WHERE same.n = w.n)) AS int) END

-- name: whole_instances
-- reads all instances of young and small jobs without waits and without receipts with open steps, each with the
-- entry of its result (W6). $1 jobs, $2 most entries, $3 most rows.
SELECT j.id, i.activity, i.dad_text, {instance:i},
       (SELECT e.body FROM entries e
        WHERE e.n = i.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = nullif(i.result_seq, 0))
FROM jobs j JOIN instances i ON i.n = j.n
WHERE j.id = ANY ($1::uuid[]) AND j.head_seq <= $2::int8
  AND (SELECT count(*) FROM (SELECT FROM dispatches d WHERE d.job = j.id LIMIT $3::int8 + 1) AS few) <= $3::int8
  AND NOT EXISTS (SELECT FROM waits w WHERE w.job = j.id OFFSET 0)
  AND NOT EXISTS (SELECT FROM receipts r WHERE r.n = j.n AND r.verdict = 'handled'
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
