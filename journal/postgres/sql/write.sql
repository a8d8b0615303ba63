-- name: write_marker
-- writes the marker of a batch (J4). It is the first statement of a commit, and keeps the sessions for which the
-- batch takes something from ending before the commit does (W8). $1 session of the committer, $2 seq, $3 sessions
-- of processes. A second marker is 23505; a session that has ended is an error.
WITH alive AS MATERIALIZED (SELECT s.id FROM sessions s WHERE s.id = ANY ($3::int8[]) AND NOT s.dead FOR KEY SHARE SKIP LOCKED)
INSERT INTO batches (session, seq, at)
SELECT $1::uuid, $2::int8, CASE WHEN count(*) = cardinality($3::int8[]) THEN micros()
                                ELSE CAST('quipu: lost sessions ' || cardinality($3::int8[]) - count(*) AS int) END FROM alive

-- name: write_mailboxes
-- locks mailboxes until the end of the transaction, in the order given, so that the registration of a wait and the
-- delivery of a signal cannot miss each other (J3). $1 lock keys, sorted.
SELECT count(pg_advisory_xact_lock(k)) FROM unnest($1::int8[]) AS w (k)

-- name: write_jobs_next
-- records in closed jobs which jobs resume them, by test-and-set. $1 jobs, $2 the next ones.
WITH moved AS (
    UPDATE jobs j SET next = ($2::uuid[])[array_position($1::uuid[], j.id)]
    WHERE j.id = ANY ($1::uuid[]) AND coalesce(j.next, j.id) = j.id AND j.state IN ('failed', 'interrupted')
    RETURNING 1
)
SELECT {changed jobs 1} FROM moved

-- name: write_jobs_new
-- inserts the jobs of inceptions (1.11), as the batch leaves them. A key whose job is only a tombstone gets a later
-- generation; its tombstone gives the key up before. Rows go in the order of keys, so that two starters cannot
-- deadlock. A key that is taken is an error with its places in the arrays from 1. The transaction gets its id before
-- it draws a number: a partition is dropped only once every transaction older than its end is over. Returns the
-- numbers of the jobs as lines. $1 triggers, $2 classes of retention, $3 and $4 the entries that close them and that
-- run their tasks, 0 for none, $5 when they expire, 0 where they are kept, $6 the jobs.
WITH w AS MATERIALIZED (
    SELECT w.*, CASE w.class
        WHEN 0 THEN nextval('numbers_never') WHEN 1 THEN nextval('numbers_days')
        WHEN 2 THEN nextval('numbers_months') WHEN 3 THEN nextval('numbers_years') END AS n
    FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], {job param 6})
        WITH ORDINALITY AS w (trigger, class, close_seq, tasks_seq, expires, {job}, place)
    WHERE pg_current_xact_id() IS NOT NULL
), buried AS (
    UPDATE jobs t SET next = '00000000-0000-0000-0000-000000000000'
    FROM (SELECT j.id FROM (SELECT * FROM w ORDER BY key) AS w
          CROSS JOIN LATERAL (SELECT * FROM jobs j WHERE j.key = w.key AND j.next IS NULL AND j.state = 'expired' AND j.generation < w.generation OFFSET 0) AS j
          OFFSET 0) AS w
    WHERE t.id = w.id AND coalesce(t.next, t.id) = t.id
    RETURNING 1
), born AS (
    INSERT INTO jobs (trigger, n, closed_seq, closed, tasks_seq, expires_at, {job})
    SELECT w.trigger, w.n, nullif(w.close_seq, 0), CASE WHEN w.close_seq > 0 THEN micros() END,
           nullif(w.tasks_seq, 0), nullif(w.expires, 0), {job:w}
    FROM w, (SELECT count(*) FROM buried) AS before
    ORDER BY w.key
    ON CONFLICT (key) WHERE next IS NULL DO NOTHING
    RETURNING id, n
)
SELECT CASE WHEN count(born.n) = count(*) THEN string_agg(born.n::text, E'\n' ORDER BY w.place)
            ELSE CAST('quipu: lost keys ' || string_agg(w.place::text, ',') FILTER (WHERE born.n IS NULL) AS int)::text END
FROM unnest({job param 6}) WITH ORDINALITY AS w ({job}, place)
LEFT JOIN born ON born.id = w.id

-- name: write_floor
-- checks that inceptions are above the floor of generations (W11). It comes after write_jobs_new, which may have waited
-- for the end of a tombstone and then cannot see the floor that this has raised. A generation that is not above it
-- is an error with its places in the array from 1. $1 generations.
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE CAST('quipu: lost keys ' || string_agg(w.place::text, ',') AS int) END
FROM unnest($1::int8[]) WITH ORDINALITY AS w (generation, place)
WHERE w.generation <= (SELECT s.floor FROM space s WHERE s.single)

-- name: write_jobs
-- the compound statement (C14). It moves semaphore and head by test-and-set, compares the semaphore with the
-- threshold $2, and sets the snapshot digit of the closing receipt. A job that moved otherwise than its plan
-- predicted is an error. expires is 0 where the job is kept. $3 and $4 the span of the jobs.
WITH w AS MATERIALIZED (
    SELECT * FROM unnest({move param 1}) AS w ({move})
), moved AS (
    UPDATE jobs j
    SET semaphore = j.semaphore + (w.sem_after - w.sem_before),
        head_seq = w.seq_after,
        head_hash = w.hash,
        state = CASE WHEN w.state = '' THEN j.state ELSE w.state END,
        closed_seq = CASE WHEN j.state = 'open' AND w.sem_after <> w.sem_before AND j.semaphore + (w.sem_after - w.sem_before) = $2::int8
                          THEN w.close_seq ELSE j.closed_seq END,
        closed = CASE WHEN j.state = 'open' AND w.sem_after <> w.sem_before AND j.semaphore + (w.sem_after - w.sem_before) = $2::int8
                      THEN micros() ELSE j.closed END,
        tasks_seq = CASE WHEN w.tasks_seq = 0 THEN j.tasks_seq ELSE w.tasks_seq END,
        expires_at = CASE WHEN w.expires = 0 THEN j.expires_at ELSE w.expires END
    FROM w
    WHERE j.id = w.job AND j.semaphore = w.sem_before AND j.head_seq = w.seq_before
      AND j.n = coalesce(w.known, j.n)
      AND coalesce(j.state = w.was_state AND j.head_hash = w.was_hash, true)
    RETURNING j.n, w.closes, w.guid, w.fresh, w.before, w.after, w.seq,
              coalesce(j.closed_seq > w.seq_before, false) AS hit
), fresh AS (
    INSERT INTO receipts (n, guid, ledger, verdict, seq)
    SELECT n, guid, after - 100000000000 + CASE WHEN hit THEN 100000000000 ELSE 0 END, 'handled', seq
    FROM moved WHERE closes AND fresh
    RETURNING 1
), grown AS (
    UPDATE receipts r
    SET ledger = m.after - 100000000000 + CASE WHEN m.hit THEN 100000000000 ELSE 0 END
    FROM moved m
    WHERE m.closes AND NOT m.fresh AND r.n = m.n AND r.guid = m.guid AND r.ledger = m.before
      AND m.after % 100000000 = r.ledger % 100000000
      AND m.after / 10000000000 % 10 >= r.ledger / 10000000000 % 10
      AND m.after / 1000000000 % 10 >= r.ledger / 1000000000 % 10
      AND m.after / 100000000 % 10 >= r.ledger / 100000000 % 10
      AND {r within 3}
    RETURNING 1
), tally AS MATERIALIZED (
    SELECT (SELECT count(*) FROM moved WHERE hit = closes) AS jobs,
           (SELECT count(*) FROM fresh) + (SELECT count(*) FROM grown) AS receipts
)
SELECT CASE WHEN jobs = cardinality({move param 1}) AND receipts = (SELECT count(*) FROM w WHERE closes) THEN 0
            ELSE CAST('quipu: lost jobs, moved ' || jobs || ' with ' || receipts || ' closing receipts' AS int) END
FROM tally

-- name: write_head
-- moves only the heads of main chains, by test-and-set (J8).
WITH moved AS (
    UPDATE jobs j SET head_seq = w.after, head_hash = w.hash
    FROM unnest({head param 1}) AS w ({head})
    WHERE j.id = w.job AND j.semaphore = w.semaphore AND j.n = coalesce(w.known, j.n)
      AND j.head_seq = w.before AND coalesce(j.state = w.was_state AND j.head_hash = w.was_hash, true)
    RETURNING 1
)
SELECT {changed jobs 1} FROM moved

-- name: write_instances_new
-- inserts instances. A second one is 23505.
INSERT INTO instances (n, activity, dad, is_join, dad_text, {instance})
SELECT {n w}, activity, dad, is_join, dad_text, {instance}
FROM unnest({placed param 1}) AS w ({placed})

-- name: write_instances
-- moves activity ledgers by test-and-set of the whole value. It also compares each group of digits, since a carry
-- can look legal (C3, C4). $2 and $3 the span of the jobs.
WITH moved AS (
    UPDATE instances i
    SET is_join = i.is_join OR w.is_join, {instance set w}
    FROM (SELECT w.*, {n w} AS n FROM unnest({placed param 1}) AS w ({placed}) OFFSET 0) AS w
    WHERE i.n = w.n AND i.activity = w.activity AND i.dad = w.dad AND i.ledger = w.before
      AND (w.ledger / 100000000000000 = i.ledger / 100000000000000
           OR i.ledger / 100000000000000 = 0 AND w.ledger / 100000000000000 = 2)
      AND w.ledger / 1000000000000 % 100 >= i.ledger / 1000000000000 % 100
      AND w.ledger / 100000000000 % 10 >= i.ledger / 100000000000 % 10
      AND w.ledger / 10000000000 % 10 >= i.ledger / 10000000000 % 10
      AND w.ledger / 100000000 % 100 >= i.ledger / 100000000 % 100
      AND w.ledger % 100000000 >= i.ledger % 100000000
      AND {i within 2}
    RETURNING 1
)
SELECT {changed instances 1} FROM moved

-- name: write_receipts_new
-- inserts receipts (C7). $1 jobs, $2 their numbers, null where not known, $3 GUIDs, $4 ledgers, $5 verdicts, $6 seqs.
-- A second one is 23505.
INSERT INTO receipts (n, guid, ledger, verdict, seq)
SELECT {n w}, guid, ledger, verdict, seq
FROM unnest($1::uuid[], $2::int8[], $3::uuid[], $4::int8[], $5::text[], $6::int8[]) AS w (job, known, guid, ledger, verdict, seq)

-- name: write_receipts
-- sets markers of GUID ledgers by test-and-set of the whole value and digit by digit; the ordinal must not change
-- (C3, C4). $1 jobs, $2 their numbers, null where not known, $3 GUIDs, $4 before, $5 after, $6 and $7 their span.
WITH moved AS (
    UPDATE receipts r
    SET ledger = w.after
    FROM (SELECT w.*, {n w} AS n
          FROM unnest($1::uuid[], $2::int8[], $3::uuid[], $4::int8[], $5::int8[]) AS w (job, known, guid, before, after)
          OFFSET 0) AS w
    WHERE r.n = w.n AND r.guid = w.guid AND r.ledger = w.before AND r.verdict = 'handled'
      AND w.after % 100000000 = r.ledger % 100000000
      AND w.after / 100000000000 = r.ledger / 100000000000
      AND w.after / 10000000000 % 10 >= r.ledger / 10000000000 % 10
      AND w.after / 1000000000 % 10 >= r.ledger / 1000000000 % 10
      AND w.after / 100000000 % 10 >= r.ledger / 100000000 % 10
      AND {r within 6}
    RETURNING 1
)
SELECT {changed receipts 1} FROM moved

-- name: write_receipts_gone
-- deletes receipts in the commit that deletes the rows of their messages (W12), by the test-and-set of
-- write_receipts: both steps are done, and the message did not close the job (C3, C4). $1 jobs, $2 their
-- numbers, null where not known, $3 GUIDs, $4 before, $5 after, $6 and $7 their span.
WITH gone AS (
    DELETE FROM receipts r
    USING (SELECT w.*, {n w} AS n
           FROM unnest($1::uuid[], $2::int8[], $3::uuid[], $4::int8[], $5::int8[]) AS w (job, known, guid, before, after)
           OFFSET 0) AS w
    WHERE r.n = w.n AND r.guid = w.guid AND r.ledger = w.before AND r.verdict = 'handled'
      AND w.after % 100000000 = r.ledger % 100000000 AND w.after / 100000000 = 110
      AND {r within 6}
    RETURNING 1
)
SELECT {changed receipts 1} FROM gone

-- name: write_entries
-- appends entries to chains (J8). A seq that exists is 23505.
INSERT INTO entries (n, chain, seq, body, hash, mac)
SELECT {n w}, chain, seq, body, hash, mac
FROM unnest({entry param 1}) AS w ({entry})

-- name: write_rows_delete
-- deletes rows (T1), and cancels starts that their sender awaits and nobody has handled. A row that is gone, or has
-- another sender or none, means: decide again (C15). $1 jobs, $2 GUIDs, $3 senders, null for own rows, $4 the revs
-- that were read, null for locked rows.
WITH gone AS (
    DELETE FROM dispatches d
    USING unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int8[]) AS w (job, guid, sender, was)
    WHERE d.job = w.job AND d.guid = w.guid AND (w.sender IS NULL OR d.sender = w.sender) AND coalesce(d.rev = w.was, true)
    RETURNING 1
)
SELECT {changed rows 1} FROM gone

-- name: write_rows_discard
-- deletes rows whose messages have nothing left to do, if they exist (C5). A row that another transaction has
-- locked stays, and is sent again. $1 jobs, $2 GUIDs.
WITH w AS MATERIALIZED (
    SELECT d.job, d.guid
    FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
    JOIN dispatches d ON d.job = w.job AND d.guid = w.guid
    FOR UPDATE OF d SKIP LOCKED
)
DELETE FROM dispatches d USING w WHERE d.job = w.job AND d.guid = w.guid

-- name: write_rows_new
-- inserts dispatch rows (T1). A second one is 23505.
INSERT INTO dispatches ({row})
SELECT * FROM unnest({row param 1})

-- name: write_rows
-- replaces dispatch rows, which this transaction has loaded and locked (J8), or whose revs are compared (W6). A row
-- that is gone, or whose rev would not rise, means: decide again. $2 the revs that were read, null for locked rows.
WITH moved AS (
    UPDATE dispatches d
    SET {row set w}
    FROM unnest({row param 1}, $2::int8[]) AS w ({row}, was)
    WHERE d.job = w.job AND d.guid = w.guid AND d.rev < w.rev AND coalesce(d.rev = w.was, true)
    RETURNING 1
)
SELECT {changed rows 1} FROM moved

-- name: write_waits_delete
-- deletes waits. The delete decides between a wait's signal and its timer (1.11). A wait that is gone means: decide
-- again. $1 jobs, $2 GUIDs, $3 counts of signals; another count (a delivery meanwhile) means: decide again.
WITH gone AS (
    DELETE FROM waits w
    USING unnest($1::uuid[], $2::uuid[], $3::int8[]) AS a (job, guid, count)
    WHERE w.job = a.job AND w.guid = a.guid AND w.count = a.count
    RETURNING 1
)
SELECT {changed waits 1} FROM gone

-- name: write_waits_new
-- registers waits, under the locks of their mailboxes (J3). $1 mailboxes. A second one is 23505.
INSERT INTO waits (mailbox, {wait})
SELECT * FROM unnest($1::uuid[], {wait param 2})

-- name: write_waits
-- counts signals that were delivered to repeating waits, by test-and-set under the locks of their mailboxes. $1
-- jobs, $2 GUIDs, $3 counts before, $4 after. A wait that is gone means: decide again.
WITH moved AS (
    UPDATE waits w
    SET count = a.after
    FROM unnest($1::uuid[], $2::uuid[], $3::int8[], $4::int8[]) AS a (job, guid, before, after)
    WHERE w.job = a.job AND w.guid = a.guid AND w.count = a.before
    RETURNING 1
)
SELECT {changed waits 1} FROM moved

-- name: write_kept_due
-- makes the oldest kept signals due that have not expired, in mailboxes where waits were registered, under their
-- locks (J3). $1 mailboxes, $2 how many of each, $3 microseconds after which those are due that the process publishes
-- right after the commit, 0 for none that it publishes, $4 its session, 0 for none. Returns what
-- messages carry, the oldest first.
WITH moved AS (
    UPDATE dispatches d
    SET rev = d.rev + 1, held = NULL, next_at = c.now + w.resend,
        publication = d.publication + CASE WHEN w.resend > 0 THEN 1 ELSE 0 END,
        published_at = CASE WHEN w.resend > 0 THEN c.now ELSE d.published_at END,
        turn_sent = CASE WHEN w.resend > 0 THEN d.turn ELSE d.turn_sent END,
        session = CASE WHEN w.resend > 0 THEN nullif(w.session, 0) ELSE d.session END
    FROM (SELECT micros() AS now OFFSET 0) c
    CROSS JOIN unnest($1::uuid[], $2::int8[], $3::int8[], $4::int8[]) AS w (mailbox, most, resend, session)
    CROSS JOIN LATERAL (
        SELECT k.guid, k.published_at AS since FROM dispatches k
        WHERE k.job = w.mailbox AND k.kind = 'signal' AND k.held = 'kept' AND coalesce(k.within_at > c.now, true)
        ORDER BY k.published_at, k.guid
        LIMIT w.most
    ) AS k
    WHERE d.job = w.mailbox AND d.guid = k.guid
    RETURNING d.job, d.guid, d.publication, d.published_at, k.since
)
SELECT job, guid, publication, published_at FROM moved ORDER BY since, guid

-- name: write_resolved
-- records the resolved waits of durable functions (E12). $1 jobs, $2 requests, $3 GUIDs, $4 kinds, $5 names, $6
-- positions, $7 seqs. A second one is 23505.
INSERT INTO resolved_waits (n, request, guid, kind, name, position, seq)
SELECT coalesce((SELECT j.n FROM jobs j WHERE j.id = w.job), CAST('quipu: lost job ' || w.job AS int8)),
       request, guid, kind, name, position, seq
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::int8[])
    AS w (job, request, guid, kind, name, position, seq)

-- name: write_letters_end
-- marks the open dead letters of rows as answered: a late answer came (E10). $1 jobs, $2 GUIDs.
UPDATE dead_letters l
SET state = 'answered'
FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
WHERE l.job = w.job AND l.guid = w.guid AND l.state = 'open'

-- name: write_letters
-- inserts dead letters (E10). A stray names a row only if that is there, and this login sees it (S8, S15). $1 jobs, $2 GUIDs, $3 kinds, $4 activities, $5 addresses, $6 reasons, $7 messages, $8
-- ledgers, $9 states, $10 raw messages, $11 sizes of strays, null for others.
INSERT INTO dead_letters (job, guid, kind, activity, dad, reason, message, ledger, state, raw, stray, at)
SELECT CASE WHEN named THEN w.job ELSE '00000000-0000-0000-0000-000000000000' END,
       CASE WHEN named THEN w.guid ELSE '00000000-0000-0000-0000-000000000000' END,
       kind, activity, dad, reason, message, ledger, state, raw, stray, micros()
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int8[],
            $9::text[], $10::bytea[], $11::int8[]) AS w (job, guid, kind, activity, dad, reason, message, ledger, state, raw, stray)
CROSS JOIN LATERAL (SELECT w.stray IS NULL OR w.guid = '00000000-0000-0000-0000-000000000000' OR EXISTS (
    SELECT FROM dispatches d WHERE d.job = w.job AND d.guid = w.guid OFFSET 0) AS named) AS n

-- name: announce
-- tells the engines at the commit that there is a due row which nobody publishes (W9).
SELECT pg_notify(current_schema(), '')
