-- write_jobs_new: inception (1.11): new jobs, or the next generation of a key of which only the tombstone is left, which goes to those of keys used again. In the order of keys, so that two starters cannot wait for each other. A key that is taken is an error.
WITH w AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::int8[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::bytea[],
                         $9::int8[], $10::text[], $11::text[], $12::uuid[], $13::text[], $14::text[], $15::uuid[], $16::int8[],
                         $17::bool[])
        AS w (id, key, generation, flow_name, flow_version, flow_digest, trigger, hash, started, trace, parent_space,
              parent_job, parent_activity, parent_dad, parent_leg1, parent_turn, parent_awaited)
), buried AS (
    INSERT INTO tombs (id, key, generation, head_seq, head_hash, closed, expires_at, at)
    SELECT j.id, j.key, j.generation, j.head_seq, j.head_hash, j.closed, j.expires_at, micros()
    FROM w JOIN jobs j ON j.key = w.key AND j.state = 'expired' AND j.generation = w.generation - 1
), born AS (
    INSERT INTO jobs (id, key, generation, flow_name, flow_version, flow_digest, trigger, state, semaphore, head_seq,
                      head_hash, started, trace, parent_space, parent_job, parent_activity, parent_dad, parent_leg1,
                      parent_turn, parent_awaited)
    SELECT w.id, w.key, w.generation, w.flow_name, w.flow_version, w.flow_digest, w.trigger, 'open', 1, 1,
           w.hash, w.started, w.trace, w.parent_space, w.parent_job, w.parent_activity, w.parent_dad, w.parent_leg1,
           w.parent_turn, w.parent_awaited
    FROM w
    ORDER BY w.key
    ON CONFLICT ON CONSTRAINT jobs_key DO UPDATE
    SET id = excluded.id, generation = excluded.generation, flow_name = excluded.flow_name,
        flow_version = excluded.flow_version, flow_digest = excluded.flow_digest, trigger = excluded.trigger,
        state = excluded.state, semaphore = excluded.semaphore, head_seq = excluded.head_seq,
        head_hash = excluded.head_hash, closed_seq = NULL, tasks_seq = NULL, started = excluded.started, closed = NULL,
        trace = excluded.trace, expires_at = NULL, parent_space = excluded.parent_space, parent_job = excluded.parent_job,
        parent_activity = excluded.parent_activity, parent_dad = excluded.parent_dad, parent_leg1 = excluded.parent_leg1,
        parent_turn = excluded.parent_turn, parent_awaited = excluded.parent_awaited
    WHERE jobs.state = 'expired' AND jobs.generation = excluded.generation - 1
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1::uuid[]) THEN 0
            ELSE CAST('quipu: lost keys, born ' || count(*) AS int) END
FROM born
