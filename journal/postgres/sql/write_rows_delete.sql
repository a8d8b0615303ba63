-- write_rows_delete: ends licences (T1), and takes starts back that their sender awaits and nobody has handled. A row that is gone, or has no such sender any more, means: decide again (C15). $1 jobs, $2 GUIDs, $3 senders, null for own rows.
WITH gone AS (
    DELETE FROM dispatches d
    USING unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS w (job, guid, sender)
    WHERE d.job = w.job AND d.guid = w.guid AND (w.sender IS NULL OR d.sender = w.sender)
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost rows, deleted ' || count(*) AS int) END
FROM gone
