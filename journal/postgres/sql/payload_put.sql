-- payload_put: stores an output that is sent by digest, once (E6). The job is locked against its expiry. $1 job, $2 digest, $3 bytes. Returns the number of jobs of that id.
WITH j AS MATERIALIZED (
    SELECT id FROM jobs WHERE id = $1::uuid AND state <> 'expired' FOR KEY SHARE
), put AS (
    INSERT INTO payloads (job, digest, body) SELECT id, $2::bytea, $3::bytea FROM j ON CONFLICT DO NOTHING
)
SELECT count(*) FROM j
