-- chains_put: writes what effects change of dispatch rows that this transaction locked (J8). A row that is gone means: decide again. $1 jobs, $2 GUIDs, $3 due times, $4 held, $5 dead, $6 turns sent, $7 runs, $8 holders, $9 ends of leases, $10 fences, $11 and $12 heads of the chains, $13 undo.
WITH moved AS (
    UPDATE dispatches d
    SET next_at = w.next_at, held = w.held, dead = w.dead, turn_sent = w.turn_sent, runs = w.runs, holder = w.holder,
        lease_until = w.lease_until, fence = w.fence, effects_seq = w.effects_seq, effects_hash = w.effects_hash, undo = w.undo
    FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::text[], $5::bool[], $6::int8[], $7::int8[], $8::text[], $9::int8[],
                $10::int8[], $11::int8[], $12::bytea[], $13::bool[])
        AS w (job, guid, next_at, held, dead, turn_sent, runs, holder, lease_until, fence, effects_seq, effects_hash, undo)
    WHERE d.job = w.job AND d.guid = w.guid
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost rows, updated ' || count(*) AS int) END
FROM moved
