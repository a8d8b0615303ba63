-- load_unfinished: whether requests have an effect outside with a start and no end (E4). $1 jobs, $2 requests. Returns the place in the arrays from 1, and the answer.
SELECT w.n, EXISTS (SELECT FROM effects e WHERE e.job = w.job AND e.request = w.request AND e.state = 'started' AND e.class <> 'undo')
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, request, n)
