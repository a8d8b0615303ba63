-- write_woken: records pauses of durable functions that have come (E12). $1 jobs, $2 requests, $3 GUIDs, $4 kinds, $5 names, $6 positions, $7 seqs. A second one is 23505.
INSERT INTO woken (job, request, guid, kind, name, position, seq)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::int8[])
