-- name: load_holders
-- finds the jobs that have keys, with the input that each was started with, to be compared (1.11). If there is a
-- floor, a free key counts as a tombstone in the generation of the floor (W11). $1 keys. Returns the place in the
-- array from 1, and the row.
SELECT w.place, j.id, CASE WHEN j.state <> 'expired' THEN j.generation ELSE greatest(j.generation, s.floor) END,
       coalesce(j.state, 'expired'), j.flow_name, j.flow_version, j.flow_digest,
       CASE WHEN j.state <> 'expired' THEN
           (SELECT {sealed e} FROM entries e
            WHERE e.n = j.n AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = 1)
       END, s.floor
FROM unnest($1::text[]) WITH ORDINALITY AS w (key, place)
JOIN space s ON s.single
LEFT JOIN LATERAL (SELECT * FROM jobs j WHERE j.key = w.key AND j.next IS NULL OFFSET 0) AS j ON true
WHERE j.id IS NOT NULL OR s.floor > 0

-- name: load_order_locks
-- locks the rows of the starts of children in the order of their ids, waiting for each (J3). Beginning, refusing or
-- cancelling a child takes this lock. $1 children.
SELECT job FROM dispatches WHERE job = ANY ($1::uuid[]) AND guid = job ORDER BY job FOR UPDATE

-- name: load_order_locks_skip
-- locks those of these rows that no other transaction has locked, in the order of their ids (J3). $1 children.
SELECT job FROM dispatches WHERE job = ANY ($1::uuid[]) AND guid = job ORDER BY job FOR UPDATE SKIP LOCKED

-- name: load_orders
-- reads the rows of the starts of children that have no inception yet (1.11). $1 children.
SELECT {row:d}
FROM dispatches d
WHERE d.job = ANY ($1::uuid[]) AND d.guid = d.job AND d.kind = 'start' AND NOT EXISTS (SELECT FROM jobs j WHERE j.id = d.job)

-- name: write_flows_active
-- checks that the flow versions of new jobs are active (W9). $1 names, $2 versions. One that is not is an error
-- with the places in the arrays from 1.
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE CAST('quipu: lost flows ' || string_agg(w.place::text, ',') AS int) END
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (name, version, place)
WHERE NOT EXISTS (SELECT FROM flows f WHERE f.name = w.name AND f.version = w.version AND f.active)
