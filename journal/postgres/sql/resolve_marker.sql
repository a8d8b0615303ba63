-- resolve_marker: waits for the batch of this marker and takes its place if it was not committed (J4). $1 session, $2 seq.
INSERT INTO batches (session, seq, at, taken) VALUES ($1::uuid, $2::int8, micros(), true) ON CONFLICT DO NOTHING
