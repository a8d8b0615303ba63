-- write_rows_delete: ends licences (T1). A row that is gone means: decide again (C15). $1 jobs, $2 GUIDs.
WITH gone AS (
    DELETE FROM dispatches d
    USING unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
    WHERE d.job = w.job AND d.guid = w.guid
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost rows, deleted ' || count(*) AS int) END
FROM gone
