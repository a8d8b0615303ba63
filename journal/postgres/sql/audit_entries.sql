-- audit_entries: all entries of a job, the main chain first, then the others, each by seq. $1 job.
SELECT chain, seq, body, hash FROM entries WHERE job = $1::uuid ORDER BY chain, seq
