-- name: audit_job
-- reads a job with the digest under which its flow version is deployed, its number, and the seqs of the entries that
-- closed it and ran its completion tasks, and when a tombstone that still has to stay ends. $1 id.
SELECT {job:j},
       f.digest, j.next, j.n, coalesce(j.closed_seq, 0), coalesce(j.tasks_seq, 0),
       CASE WHEN j.state = 'expired' AND j.expires_at > (SELECT micros()) THEN j.expires_at END
FROM jobs j LEFT JOIN flows f ON f.name = j.flow_name AND f.version = j.flow_version
WHERE j.id = $1::uuid AND {keyed j}

-- name: audit_entries
-- reads all entries of a job: the main chain first, then the others, each by seq. $1 its n.
SELECT chain, seq, body, hash FROM entries WHERE n = $1::int8 ORDER BY chain, seq

-- name: audit_payloads
-- reads the outputs that are stored beside the entries of a job (E6), by digest. $1 its n.
SELECT digest, body FROM payloads WHERE n = $1::int8 ORDER BY digest

-- name: audit_receipts
-- reads all receipts of a job. $1 job.
SELECT guid, ledger, verdict FROM receipts WHERE n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid)

-- name: audit_waits
-- reads all open waits of a job. $1 job.
SELECT {wait:w}
FROM waits w WHERE w.job = $1::uuid ORDER BY w.since, w.guid

-- name: audit_resolved
-- reads the resolved waits of a job's durable functions (E12). $1 job.
SELECT w.request, w.guid, w.kind, w.name, w.position, w.seq FROM resolved_waits w WHERE w.n = (SELECT j.n FROM jobs j WHERE j.id = $1::uuid)
