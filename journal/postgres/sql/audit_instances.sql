-- audit_instances: all instances of a job. $1 job.
SELECT activity, dad_text, ledger, result_seq, code FROM instances WHERE job = $1::uuid ORDER BY activity COLLATE "C", dad_text COLLATE "C"
