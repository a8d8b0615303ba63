-- load_row_locks: locks what load_all_rows reads, so that nobody waits for a worker with the mailboxes in his hands. $1 jobs.
WITH own AS MATERIALIZED (
    SELECT FROM dispatches WHERE job = ANY ($1::uuid[]) ORDER BY job, guid FOR UPDATE
), sent AS MATERIALIZED (
    SELECT FROM dispatches WHERE sender = ANY ($1::uuid[]) ORDER BY job, guid FOR UPDATE
)
SELECT (SELECT count(*) FROM own) + (SELECT count(*) FROM sent)
