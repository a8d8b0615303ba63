-- write_marker: the marker of a batch (J4). $1 session, $2 seq. A second one is 23505.
INSERT INTO batches (session, seq, at) VALUES ($1::uuid, $2::int8, micros())
