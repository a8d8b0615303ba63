-- name: audit_job
-- reads a job with the digest under which its flow version is deployed. $1 id.
SELECT {job:j},
       f.digest, j.next
FROM jobs j LEFT JOIN flows f ON f.name = j.flow_name AND f.version = j.flow_version
WHERE j.id = $1::uuid

-- name: audit_entries
-- reads all entries of a job: the main chain first, then the others, each by seq. $1 job.
SELECT chain, seq, body, hash FROM entries WHERE n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid) ORDER BY chain, seq

-- name: audit_payloads
-- reads the outputs that are stored beside the entries of a job (E6), by digest. $1 job.
SELECT digest, body FROM payloads WHERE n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid) ORDER BY digest

-- name: audit_instances
-- reads all instances of a job, including rows that only point to an output. $1 job.
SELECT activity, dad_text, {instance}
FROM instances WHERE n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid) ORDER BY activity COLLATE "C", dad_text COLLATE "C"

-- name: audit_receipts
-- reads all receipts of a job. $1 job.
SELECT guid, ledger, verdict FROM receipts WHERE n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid)

-- name: audit_rows
-- reads all dispatch rows of a job. $1 job.
SELECT {row:d}
FROM dispatches d WHERE d.job = $1::uuid ORDER BY d.origin, d.guid

-- name: audit_waits
-- reads all open waits of a job. $1 job.
SELECT {wait:w}
FROM waits w WHERE w.job = $1::uuid ORDER BY w.since, w.guid

-- name: audit_resolved
-- reads the resolved waits of a job's durable functions (E12). $1 job.
SELECT w.request, w.guid, w.kind, w.name, w.position, w.seq FROM resolved_waits w WHERE w.n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid)
