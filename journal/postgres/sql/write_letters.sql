-- write_letters: inserts dead letters (E10). $1 jobs, $2 GUIDs, $3 kinds, $4 activities, $5 addresses, $6 reasons, $7 messages, $8 ledgers, $9 states, $10 raw messages.
INSERT INTO dead_letters (job, guid, kind, activity, dad, reason, message, ledger, state, raw, at)
SELECT w.*, micros()
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int8[],
            $9::text[], $10::bytea[]) AS w
