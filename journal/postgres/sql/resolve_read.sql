-- resolve_read: whose the marker is: taken means that the batch was not committed (J4). $1 session, $2 seq.
SELECT taken FROM batches WHERE session = $1::uuid AND seq = $2::int8
