-- start_lookup: what has the keys, with the input that a job was started with (1.11), to be compared. $1 keys. Returns the place in the array from 1, and the row.
SELECT w.n, j.id, j.generation, j.state, j.flow_name, j.flow_version, j.flow_digest,
       CASE WHEN j.state <> 'expired' THEN
           (SELECT e.body FROM entries e
            WHERE e.job = j.id AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = 1)
       END
FROM unnest($1::text[]) WITH ORDINALITY AS w (key, n)
JOIN jobs j ON j.key = w.key
