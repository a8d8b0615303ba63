-- What the logins of workers, clients and retention see and write of the tables that hold all topics (S8). For the other
-- roles each policy is the constant true, which the planner drops: their statements have the plans that they have without
-- it. What a login writes must follow from what it cannot choose: its own name, the topics that it was given, rows that it
-- sees. What it can choose is bounded, so that no statement of another process fails on it.
DO $$
DECLARE
    t text;
    p record;
BEGIN
    FOREACH t IN ARRAY ARRAY['jobs', 'dispatches', 'sessions', 'effects', 'entries', 'payloads', 'resolved_waits', 'dead_letters', 'topic_keys', 'signals', 'waits'] LOOP
        FOR p IN SELECT policyname FROM pg_policies WHERE schemaname = '{name}' AND tablename = t LOOP
            EXECUTE format('DROP POLICY %I ON {schema}.%I', p.policyname, t);
        END LOOP;
        EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY everything ON {schema}.%I TO {others} USING (true) WITH CHECK (true)', t);
    END LOOP;
END $$;

-- A worker sees jobs, since it finds what it may see by their numbers, and can lock them, but it changes none.
CREATE POLICY worker_read ON {schema}.jobs FOR SELECT TO {role_worker} USING (true);
CREATE POLICY worker_lock ON {schema}.jobs FOR UPDATE TO {role_worker} USING (true) WITH CHECK (false);

-- The requests of its topics. The order to undo what one of its effects did says that the effect is not to be taken
-- over by a job that resumes this one. Counters that others add to, and times that they compute with, have bounds: a
-- claim, or the end of a session, takes many rows with one statement, and must not fail on one of them, nor must who
-- reads them.
CREATE POLICY worker_read ON {schema}.dispatches FOR SELECT TO {role_worker} USING (
    kind = 'request' AND topic = ANY ((SELECT {schema}.quipu_topics())::text[])
    OR kind = 'start' AND undo AND {schema}.quipu_undoes(sender));
CREATE POLICY worker_run ON {schema}.dispatches FOR UPDATE TO {role_worker}
    USING (kind = 'request' AND topic = ANY ((SELECT {schema}.quipu_topics())::text[]))
    WITH CHECK (kind = 'request' AND topic = ANY ((SELECT {schema}.quipu_topics())::text[])
        AND rev BETWEEN 0 AND 1000000000000000 AND fence BETWEEN 0 AND 1000000000000000 AND runs BETWEEN 0 AND 1000000
        AND effects_seq BETWEEN 0 AND 1000000000000000 AND coalesce(next_at BETWEEN 0 AND 100000000000000000, true)
        AND coalesce(octet_length(holder), 0) <= 1024 AND coalesce(octet_length(effects_hash) = 32, true)
        AND coalesce(held IN ('stuck', 'parked', 'parallel'), true));

-- It sees all sessions, and renews and ends those of its login. It lists no topic that it does not have. A session is
-- forgotten by an engine, which sees all that it may still hold. Everybody who renews a session computes with the times
-- of all of them.
CREATE POLICY worker_read ON {schema}.sessions FOR SELECT TO {role_worker} USING (true);
CREATE POLICY worker_open ON {schema}.sessions FOR INSERT TO {role_worker} WITH CHECK (
    login = session_user AND NOT engine AND topics <@ (SELECT {schema}.quipu_topics())::text[] AND early <@ topics
    AND lease <= 3600000000
    AND renewed_at BETWEEN 0 AND {schema}.micros() AND since BETWEEN 0 AND renewed_at
    AND octet_length(name || build || array_to_string(roles, '') || array_to_string(topics, '') || array_to_string(early, '')) <= 131072);
CREATE POLICY worker_keep ON {schema}.sessions FOR UPDATE TO {role_worker}
    USING (login = session_user)
    WITH CHECK (login = session_user AND NOT engine AND renewed_at BETWEEN 0 AND {schema}.micros() + 3600000000
        AND since BETWEEN 0 AND {schema}.micros() AND withdrawn <@ topics AND cardinality(withdrawn) <= cardinality(topics)
        AND early <@ topics AND cardinality(early) <= cardinality(topics) AND died_at BETWEEN 0 AND {schema}.micros()
        AND cardinality(ran) <= greatest(cardinality(topics), 1)
        AND cardinality(early_runs) <= 4 * greatest(cardinality(topics), 1)
        AND 0 <= ALL (early_runs) AND 1000000000000000 >= ALL (early_runs)
        AND busy BETWEEN 0 AND 1000000000000000 AND octet_length(array_to_string(troubles, '')) <= 65536);

-- The effects of its topics, also after the request has gone: their end is recorded, late. The topic of one that begins
-- is that of its request, which the worker sees.
CREATE POLICY worker_read ON {schema}.effects FOR SELECT TO {role_worker}
    USING (topic = ANY ((SELECT {schema}.quipu_topics())::text[]));
CREATE POLICY worker_end ON {schema}.effects FOR UPDATE TO {role_worker}
    USING (topic = ANY ((SELECT {schema}.quipu_topics())::text[]));
CREATE POLICY worker_begin ON {schema}.effects FOR INSERT TO {role_worker} WITH CHECK (EXISTS (
    SELECT FROM {schema}.jobs j JOIN {schema}.dispatches d ON d.job = j.id
    WHERE j.n = effects.n AND d.guid = effects.request AND d.kind = 'request' AND d.topic = effects.topic));

-- Of the journal it reads the chains of these effects, and what came to a durable function of its topics. It adds to
-- the chains of its requests, and never to a main chain.
CREATE POLICY worker_read ON {schema}.entries FOR SELECT TO {role_worker} USING (
    CASE WHEN chain = '00000000-0000-0000-0000-000000000000'
    THEN EXISTS (SELECT FROM {schema}.resolved_waits w WHERE w.n = entries.n AND w.seq = entries.seq)
    ELSE EXISTS (SELECT FROM {schema}.effects e WHERE e.n = entries.n AND e.request = entries.chain) END);
CREATE POLICY worker_add ON {schema}.entries FOR INSERT TO {role_worker} WITH CHECK (
    chain <> '00000000-0000-0000-0000-000000000000' AND octet_length(body) <= 4194304 AND (
        EXISTS (SELECT FROM {schema}.jobs j JOIN {schema}.dispatches d ON d.job = j.id
                WHERE j.n = entries.n AND d.guid = entries.chain AND d.kind = 'request')
        OR EXISTS (SELECT FROM {schema}.effects e WHERE e.n = entries.n AND e.request = entries.chain)));
CREATE POLICY worker_read ON {schema}.resolved_waits FOR SELECT TO {role_worker} USING (EXISTS (
    SELECT FROM {schema}.jobs j JOIN {schema}.dispatches d ON d.job = j.id WHERE j.n = resolved_waits.n AND d.guid = resolved_waits.request));

-- Large outputs, of jobs with a request of its topics, under the digest of their bytes: whoever stores it first, it is
-- the same.
CREATE POLICY worker_add ON {schema}.payloads FOR INSERT TO {role_worker} WITH CHECK (
    digest = sha256(body) AND octet_length(body) <= 16777216 AND EXISTS (
    SELECT FROM {schema}.jobs j JOIN {schema}.dispatches d ON d.job = j.id WHERE j.n = payloads.n AND d.kind = 'request'));

-- A late outcome ends the dead letter of its request. A message that cannot be read gets one, a stray, which names a
-- request only if that is of its topics: nobody is told that another job waits for a decision. Its time is one that
-- lists can show.
CREATE POLICY worker_read ON {schema}.dead_letters FOR SELECT TO {role_worker} USING (EXISTS (
    SELECT FROM {schema}.dispatches d WHERE d.job = dead_letters.job AND d.guid = dead_letters.guid));
CREATE POLICY worker_end ON {schema}.dead_letters FOR UPDATE TO {role_worker} USING (EXISTS (
    SELECT FROM {schema}.dispatches d WHERE d.job = dead_letters.job AND d.guid = dead_letters.guid)) WITH CHECK (state = 'answered');
CREATE POLICY worker_add ON {schema}.dead_letters FOR INSERT TO {role_worker} WITH CHECK (
    state = 'open' AND stray >= coalesce(octet_length(raw), 0) AND octet_length(message || activity || kind || dad) <= 65536
    AND at BETWEEN 0 AND {schema}.micros() AND ledger BETWEEN 0 AND 1000000000000000
    AND reason IN ('undecodable', 'foreign') AND (
        job = '00000000-0000-0000-0000-000000000000' AND guid = '00000000-0000-0000-0000-000000000000'
        OR EXISTS (SELECT FROM {schema}.dispatches d WHERE d.job = dead_letters.job AND d.guid = dead_letters.guid)));

CREATE POLICY worker_read ON {schema}.topic_keys FOR SELECT TO {role_worker} USING (
    topic = ANY ((SELECT {schema}.quipu_topics())::text[]));

-- A client sees jobs and can lock them, but it changes none.
CREATE POLICY client_read ON {schema}.jobs FOR SELECT TO {role_client} USING (true);
CREATE POLICY client_lock ON {schema}.jobs FOR UPDATE TO {role_client} USING (true) WITH CHECK (false);

-- Of the journal it reads with what a job began, and how it ended.
CREATE POLICY client_read ON {schema}.entries FOR SELECT TO {role_client} USING (
    chain = '00000000-0000-0000-0000-000000000000' AND EXISTS (
        SELECT FROM {schema}.jobs j WHERE j.n = entries.n AND entries.seq IN (1, j.closed_seq, j.tasks_seq)));

-- It learns that a job waits for a person.
CREATE POLICY client_read ON {schema}.dead_letters FOR SELECT TO {role_client} USING (EXISTS (
    SELECT FROM {schema}.jobs j WHERE j.id = dead_letters.job));

-- It writes three kinds of rows. A start with the topic ask has no parent, whatever its body says (collation.TopicAsk).
-- Each is due within minutes, so that an engine ends it, and has what a new row has: no counter that overflows when an
-- engine adds to it, no retry of an operator, no time to be kept for. A body is that of a start with the largest input, or
-- less.
CREATE POLICY client_read ON {schema}.dispatches FOR SELECT TO {role_client} USING (
    kind IN ('signal', 'interrupt') OR kind = 'start' AND topic = 'ask');
CREATE POLICY client_lock ON {schema}.dispatches FOR UPDATE TO {role_client} USING (
    kind IN ('signal', 'interrupt') OR kind = 'start' AND topic = 'ask') WITH CHECK (false);
CREATE POLICY client_add ON {schema}.dispatches FOR INSERT TO {role_client} WITH CHECK (
    held IS NULL AND sender IS NULL AND holder IS NULL AND NOT undo AND NOT dead
    AND rev = 0 AND fence = 0 AND effects_seq = 0 AND element = 0 AND turn = 0 AND turn_sent = 0 AND attempt = 0 AND runs = 0 AND origin = 0
    AND publication BETWEEN 0 AND 1 AND session IS NULL AND within_at IS NULL AND effects_hash IS NULL AND pauses IS NULL AND input IS NULL
    AND next_at BETWEEN 0 AND {schema}.micros() + 600000000 AND coalesce(published_at BETWEEN 0 AND {schema}.micros(), true)
    AND activity = '' AND dad = ',0' AND octet_length(topic) <= 1024 AND octet_length(body) <= 16777216 AND (
        kind = 'interrupt' AND EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = dispatches.job)
        OR kind = 'signal' AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = dispatches.job)
        OR kind = 'start' AND topic = 'ask' AND guid = job AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = dispatches.job)));

-- What becomes of these an engine says. A client writes that a message is on its way, of one whose row it has written.
CREATE POLICY client_read ON {schema}.signals FOR SELECT TO {role_client} USING (true);
CREATE POLICY client_add ON {schema}.signals FOR INSERT TO {role_client} WITH CHECK (
    state = 'kept' AND reason IS NULL AND EXISTS (
        SELECT FROM {schema}.dispatches d WHERE d.job = signals.job AND d.guid = signals.guid AND d.kind IN ('signal', 'start')));

-- Retention turns closed jobs into tombstones, and removes tombstones, what is open of them, and stray dead letters. A
-- tombstone ends only when the floor says that its generation has been: no key gets one twice (C8).
CREATE POLICY retention_read ON {schema}.jobs FOR SELECT TO {role_retention} USING (true);
CREATE POLICY retention_expire ON {schema}.jobs FOR UPDATE TO {role_retention}
    USING (state IN ('completed', 'failed', 'interrupted', 'expired')) WITH CHECK (state = 'expired');
CREATE POLICY retention_end ON {schema}.jobs FOR DELETE TO {role_retention} USING (
    state = 'expired' AND generation <= (SELECT s.floor FROM {schema}.space s));
CREATE POLICY retention_read ON {schema}.dispatches FOR SELECT TO {role_retention} USING (true);
CREATE POLICY retention_end ON {schema}.dispatches FOR DELETE TO {role_retention} USING (EXISTS (
    SELECT FROM {schema}.jobs j WHERE j.id = dispatches.job AND j.state = 'expired'));
CREATE POLICY retention_read ON {schema}.waits FOR SELECT TO {role_retention} USING (true);
CREATE POLICY retention_end ON {schema}.waits FOR DELETE TO {role_retention} USING (EXISTS (
    SELECT FROM {schema}.jobs j WHERE j.id = waits.job AND j.state = 'expired'));
CREATE POLICY retention_read ON {schema}.dead_letters FOR SELECT TO {role_retention} USING (true);
CREATE POLICY retention_end ON {schema}.dead_letters FOR DELETE TO {role_retention} USING (
    stray IS NOT NULL OR EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = dead_letters.job AND j.state = 'expired'));
