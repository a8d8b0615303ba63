-- load_payloads: outputs that are stored beside their entry (E6). $1 jobs, $2 digests. Returns the place in the arrays from 1, and the bytes.
SELECT w.n, p.body
FROM unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY AS w (job, digest, n)
JOIN payloads p ON p.job = w.job AND p.digest = w.digest
