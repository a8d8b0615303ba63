-- write_instances_new: creates instances. $1 jobs, $2 activities, $3 address keys, $4 addresses, $5 ledgers, $6 result seqs, $7 codes. A second one is 23505.
INSERT INTO instances (job, activity, dad, dad_text, ledger, result_seq, code)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::int8[], $6::int8[], $7::int8[])
