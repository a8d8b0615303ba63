-- write_jobs: the compound statement (C14): moves semaphore and head by test-and-set, compares with the threshold $17, and gives the closing receipt its snapshot digit. A job that moved otherwise than its plan predicted is an error. Arrays by job; $11 is null where no receipt closes, $16 is 0 where the job is kept.
WITH w AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::bytea[], $7::text[],
                         $8::bool[], $9::int8[], $10::int8[], $11::uuid[], $12::bool[], $13::int8[], $14::int8[], $15::int8[],
                         $16::int8[])
        AS w (job, sem_before, sem_after, seq_before, seq_after, hash, state,
              closes, close_seq, tasks_seq, guid, fresh, before, after, seq, expires)
), moved AS (
    UPDATE jobs j
    SET semaphore = j.semaphore + (w.sem_after - w.sem_before),
        head_seq = w.seq_after,
        head_hash = w.hash,
        state = CASE WHEN w.state = '' THEN j.state ELSE w.state END,
        closed_seq = CASE WHEN j.state = 'open' AND w.sem_after <> w.sem_before AND j.semaphore + (w.sem_after - w.sem_before) = $17::int8
                          THEN w.close_seq ELSE j.closed_seq END,
        closed = CASE WHEN j.state = 'open' AND w.sem_after <> w.sem_before AND j.semaphore + (w.sem_after - w.sem_before) = $17::int8
                      THEN micros() ELSE j.closed END,
        tasks_seq = CASE WHEN w.tasks_seq = 0 THEN j.tasks_seq ELSE w.tasks_seq END,
        expires_at = CASE WHEN w.expires = 0 THEN j.expires_at ELSE w.expires END
    FROM w
    WHERE j.id = w.job AND j.semaphore = w.sem_before AND j.head_seq = w.seq_before
    RETURNING w.job, w.closes, w.guid, w.fresh, w.before, w.after, w.seq,
              coalesce(j.closed_seq > w.seq_before, false) AS hit
), fresh AS (
    INSERT INTO receipts (job, guid, ledger, verdict, seq)
    SELECT job, guid, after - 100000000000 + CASE WHEN hit THEN 100000000000 ELSE 0 END, 'handled', seq
    FROM moved WHERE closes AND fresh
    RETURNING 1
), grown AS (
    UPDATE receipts r
    SET ledger = m.after - 100000000000 + CASE WHEN m.hit THEN 100000000000 ELSE 0 END
    FROM moved m
    WHERE m.closes AND NOT m.fresh AND r.job = m.job AND r.guid = m.guid AND r.ledger = m.before
      AND m.after % 100000000 = r.ledger % 100000000
      AND m.after / 10000000000 % 10 >= r.ledger / 10000000000 % 10
      AND m.after / 1000000000 % 10 >= r.ledger / 1000000000 % 10
      AND m.after / 100000000 % 10 >= r.ledger / 100000000 % 10
    RETURNING 1
), tally AS MATERIALIZED (
    SELECT (SELECT count(*) FROM moved WHERE hit = closes) AS jobs,
           (SELECT count(*) FROM fresh) + (SELECT count(*) FROM grown) AS receipts
)
SELECT CASE WHEN jobs = cardinality($1::uuid[]) AND receipts = (SELECT count(*) FROM w WHERE closes) THEN 0
            ELSE CAST('quipu: lost jobs, moved ' || jobs || ' with ' || receipts || ' closing receipts' AS int) END
FROM tally
