-- write_rows: replaces dispatch rows that this transaction locked when it loaded them (J8), one array per column in the order of the table. A row that is gone means: decide again.
WITH moved AS (
    UPDATE dispatches d
    SET kind = w.kind, activity = w.activity, dad = w.dad, topic = w.topic, element = w.element, body = w.body,
        next_at = w.next_at, held = w.held, dead = w.dead, publication = w.publication,
        published_at = w.published_at, turn = w.turn, turn_sent = w.turn_sent, try = w.try, runs = w.runs,
        holder = w.holder, lease_until = w.lease_until, fence = w.fence, within_at = w.within_at,
        effects_seq = w.effects_seq, effects_hash = w.effects_hash, origin = w.origin, sender = w.sender,
        pauses = w.pauses, undo = w.undo, input = w.input
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int8[], $8::bytea[], $9::int8[],
            $10::text[], $11::bool[], $12::int8[], $13::int8[], $14::int8[], $15::int8[], $16::int8[], $17::int8[],
            $18::text[], $19::int8[], $20::int8[], $21::int8[], $22::int8[], $23::bytea[], $24::int8[], $25::uuid[],
            $26::bytea[], $27::bool[], $28::bytea[])
        AS w (guid, job, kind, activity, dad, topic, element, body, next_at, held, dead, publication, published_at,
                        turn, turn_sent, try, runs, holder, lease_until, fence, within_at, effects_seq, effects_hash, origin, sender, pauses, undo, input)
    WHERE d.job = w.job AND d.guid = w.guid
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost rows, updated ' || count(*) AS int) END
FROM moved
