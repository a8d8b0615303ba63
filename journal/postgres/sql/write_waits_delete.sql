-- write_waits_delete: ends waits; whoever deletes one has decided between its signal and its timer (1.11). A wait that is gone means: decide again. $1 jobs, $2 GUIDs, $3 counts of signals: a delivery since it was read means decide again, too.
WITH gone AS (
    DELETE FROM waits w
    USING unnest($1::uuid[], $2::uuid[], $3::int8[]) AS a (job, guid, count)
    WHERE w.job = a.job AND w.guid = a.guid AND w.count = a.count
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost waits, deleted ' || count(*) AS int) END
FROM gone
