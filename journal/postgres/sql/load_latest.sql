-- load_latest: the entry that holds the latest result of an activity, whatever its address (5.1). $1 jobs, $2 activities. Returns the place in the arrays from 1, and the body, null where there is no result.
SELECT w.n,
       (SELECT e.body FROM entries e
        WHERE e.job = w.job AND e.chain = '00000000-0000-0000-0000-000000000000'
          AND e.seq = (SELECT max(i.result_seq) FROM instances i WHERE i.job = w.job AND i.activity = w.activity))
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS w (job, activity, n)
