-- load_keys: the jobs that have the keys; a tombstone is no job. $1 keys. Returns the place in the array from 1, and the id.
SELECT w.n, j.id
FROM unnest($1::text[]) WITH ORDINALITY AS w (key, n)
JOIN jobs j ON j.key = w.key AND j.state <> 'expired'
