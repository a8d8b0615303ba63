-- write_instances_new: creates instances. $1 jobs, $2 activities, $3 address keys, $4 joins, $5 ledgers, $6 result seqs, $7 codes, $8 Leg1 GUIDs, $9 open elements, $10 counts, $11 sizes, $12 turns, $13 tries, $14 children, $15 addresses. A second one is 23505.
INSERT INTO instances (job, activity, dad, is_join, ledger, result_seq, code, leg1, open, count, size, turn, try, child, dad_text)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::bool[], $5::int8[], $6::int8[], $7::int8[], $8::uuid[],
                     $9::int8[], $10::int8[], $11::int8[], $12::int8[], $13::int8[], $14::uuid[], $15::text[])
