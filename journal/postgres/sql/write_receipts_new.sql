-- write_receipts_new: creates receipts (C7). $1 jobs, $2 GUIDs, $3 ledgers, $4 verdicts, $5 seqs. A second one is 23505.
INSERT INTO receipts (job, guid, ledger, verdict, seq)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::text[], $5::int8[])
