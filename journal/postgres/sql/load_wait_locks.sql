-- load_wait_locks: locks the mailboxes in which jobs wait for signals again and again, some of them at most, in the order of their lock keys: what is read of these waits is still so when the transaction writes (J3). $1 jobs, $2 how many.
SELECT count(pg_advisory_xact_lock(k)) FROM (
    SELECT DISTINCT ('x' || left(replace(w.mailbox::text, '-', ''), 16))::bit(64)::int8 AS k
    FROM waits w
    WHERE w.job = ANY ($1::uuid[]) AND w.repeat
    ORDER BY k
    LIMIT $2::int8
) AS w
