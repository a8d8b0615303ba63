-- write_rows_new: inserts dispatch rows (T1), one array per column in the order of the table. A second one is 23505.
INSERT INTO dispatches (guid, job, kind, activity, dad, topic, element, body, next_at, held, dead, publication, published_at,
                        turn, turn_sent, try, runs, holder, lease_until, fence, within_at, effects_seq, effects_hash, origin, sender, pauses, undo, input)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int8[], $8::bytea[], $9::int8[],
            $10::text[], $11::bool[], $12::int8[], $13::int8[], $14::int8[], $15::int8[], $16::int8[], $17::int8[],
            $18::text[], $19::int8[], $20::int8[], $21::int8[], $22::int8[], $23::bytea[], $24::int8[], $25::uuid[],
            $26::bytea[], $27::bool[], $28::bytea[])
