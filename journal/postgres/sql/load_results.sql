-- load_results: the entries that hold outputs (J7). $1 jobs, $2 activities, $3 address keys. Returns the place in the arrays from 1, and the body, null where there is no result. The subquery keeps the order of the joins: an instance, then its one entry.
SELECT w.n,
       (SELECT e.body FROM entries e
        WHERE e.job = i.job AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = i.result_seq)
FROM unnest($1::uuid[], $2::text[], $3::uuid[]) WITH ORDINALITY AS w (job, activity, dad, n)
JOIN instances i ON i.job = w.job AND i.activity = w.activity AND i.dad = w.dad
WHERE i.result_seq > 0
