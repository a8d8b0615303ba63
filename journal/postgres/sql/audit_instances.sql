-- audit_instances: all instances of a job, also rows that only point to an output. $1 job.
SELECT activity, dad_text, ledger, result_seq, code, leg1, open, count, size, turn, try, child
FROM instances WHERE job = $1::uuid ORDER BY activity COLLATE "C", dad_text COLLATE "C"
