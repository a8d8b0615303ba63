-- load_instances: activity ledgers by primary key (J2). $1 jobs, $2 activities, $3 address keys. Returns the place in the arrays from 1, and the row.
SELECT w.n, i.ledger, i.result_seq, i.code, i.leg1, i.open, i.count, i.size, i.turn, i.try, i.child
FROM unnest($1::uuid[], $2::text[], $3::uuid[]) WITH ORDINALITY AS w (job, activity, dad, n)
JOIN instances i ON i.job = w.job AND i.activity = w.activity AND i.dad = w.dad
