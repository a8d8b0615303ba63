-- name: start_lookup
-- what has the keys, with the input that a job was started with (1.11), to be compared. $1 keys. Returns the place in
-- the array from 1, and the row.
SELECT w.n, j.id, j.generation, j.state, j.flow_name, j.flow_version, j.flow_digest,
       CASE WHEN j.state <> 'expired' THEN
           (SELECT e.body FROM entries e
            WHERE e.job = j.id AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = 1)
       END
FROM unnest($1::text[]) WITH ORDINALITY AS w (key, n)
JOIN jobs j ON j.key = w.key

-- name: order_lock
-- locks the row of a child's start: what is read after it holds until the end of the transaction. $1 child.
SELECT guid FROM dispatches WHERE job = $1::uuid AND guid = $1::uuid FOR UPDATE

-- name: order_read
-- the row of a child's start that has no inception yet (1.11). $1 child.
SELECT {row:d}
FROM dispatches d
WHERE d.job = $1::uuid AND d.guid = $1::uuid AND d.kind = 'start' AND NOT EXISTS (SELECT FROM jobs j WHERE j.id = $1::uuid)
