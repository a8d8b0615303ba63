-- write_waits: counts signals delivered to waits that stay, under the locks of their mailboxes, by test-and-set. $1 jobs, $2 GUIDs, $3 counts before, $4 after. A wait that is gone means: decide again.
WITH moved AS (
    UPDATE waits w
    SET count = a.after
    FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[]) AS a (job, guid, before, after)
    WHERE w.job = a.job AND w.guid = a.guid AND w.count = a.before
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost waits, counted ' || count(*) AS int) END
FROM moved
