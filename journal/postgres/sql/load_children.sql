-- load_children: the instances of jobs that have a child (C15). $1 jobs.
SELECT i.job, i.activity, i.dad_text, i.ledger, i.result_seq, i.code, i.leg1, i.open, i.count, i.size, i.turn, i.try, i.child
FROM instances i WHERE i.job = ANY ($1::uuid[]) AND i.child IS NOT NULL
