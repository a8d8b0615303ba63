-- audit_receipts: all receipts of a job. $1 job.
SELECT guid, ledger, verdict FROM receipts WHERE job = $1::uuid
