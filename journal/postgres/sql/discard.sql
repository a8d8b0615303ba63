-- discard: ends rows whose job is only a tombstone, or was taken back before it began: neither the job nor its start is there (C5). A signal has no job. $1 jobs, $2 GUIDs. Returns their number.
WITH w AS MATERIALIZED (
    SELECT w.job, w.guid, j.state = 'expired' OR t.id IS NOT NULL AS tomb, j.id IS NULL AND s.guid IS NULL AS never
    FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
    LEFT JOIN jobs j ON j.id = w.job
    LEFT JOIN tombs t ON t.id = w.job
    LEFT JOIN dispatches s ON s.job = w.job AND s.guid = w.job
), gone AS (
    DELETE FROM dispatches d
    USING w
    WHERE d.job = w.job AND d.guid = w.guid AND (w.tomb OR w.never)
    RETURNING 1
)
SELECT count(*) FROM gone
