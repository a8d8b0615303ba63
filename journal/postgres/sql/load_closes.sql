-- load_closes: the entries that closed jobs (C15). $1 jobs. Returns the id, and the body, null while the job is open. The subquery keeps the order of the joins: a job, then its one entry.
SELECT j.id,
       (SELECT e.body FROM entries e
        WHERE e.job = j.id AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = j.closed_seq)
FROM jobs j WHERE j.id = ANY ($1::uuid[])
