-- write_jobs_new: inception (1.11): new jobs, or the next generation of a key of which only the tombstone is left. In the order of keys, so that two starters cannot wait for each other. A key that is taken is an error.
WITH born AS (
    INSERT INTO jobs (id, key, generation, flow_name, flow_version, flow_digest, trigger, state, semaphore,
                      head_seq, head_hash, started, trace)
    SELECT w.id, w.key, w.generation, w.flow_name, w.flow_version, w.flow_digest, w.trigger, 'open', 1,
           1, w.hash, w.started, w.trace
    FROM unnest($1::uuid[], $2::text[], $3::int8[], $4::text[], $5::text[], $6::bytea[], $7::text[],
                $8::bytea[], $9::int8[], $10::text[])
        AS w (id, key, generation, flow_name, flow_version, flow_digest, trigger, hash, started, trace)
    ORDER BY w.key
    ON CONFLICT ON CONSTRAINT jobs_key DO UPDATE
    SET id = excluded.id, generation = excluded.generation, flow_name = excluded.flow_name,
        flow_version = excluded.flow_version, flow_digest = excluded.flow_digest, trigger = excluded.trigger,
        state = excluded.state, semaphore = excluded.semaphore, head_seq = excluded.head_seq,
        head_hash = excluded.head_hash, closed_seq = NULL, tasks_seq = NULL,
        started = excluded.started, closed = NULL, trace = excluded.trace
    WHERE jobs.state = 'expired' AND jobs.generation = excluded.generation - 1
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost keys, born ' || count(*) AS int) END
FROM born
