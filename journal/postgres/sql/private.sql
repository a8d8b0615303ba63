-- name: private_jobs
-- holds that every job has a digest for its key, also one that is begun by a process that does not know yet (S15).
ALTER TABLE jobs ADD CONSTRAINT jobs_key_private CHECK (key LIKE 'sha256:%' AND length(key) >= 71)

-- name: private_set
-- lets the space keep digests of keys, unless it has messages, such as signals under their own keys (S15). Returns a
-- row if it does.
UPDATE space SET private = true WHERE single AND NOT EXISTS (SELECT FROM dispatches) RETURNING 1
