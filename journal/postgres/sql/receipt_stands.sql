-- receipt_stands: a row where a message of a job has its receipt. $1 job, $2 GUID.
SELECT 1 FROM receipts WHERE job = $1::uuid AND guid = $2::uuid
