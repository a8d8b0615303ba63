-- write_entries: appends to chains (J8). $1 jobs, $2 chains, $3 seqs, $4 bodies, $5 hashes. A seq that is taken is 23505.
INSERT INTO entries (job, chain, seq, body, hash)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::bytea[], $5::bytea[])
