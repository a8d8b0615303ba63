-- What the logins of workers and clients see and write of the tables that hold all topics (S8). For the other roles each policy is
-- the constant true, which the planner drops: their statements have the plans that they have without it.
DO $$
DECLARE
    t text;
    p record;
BEGIN
    FOREACH t IN ARRAY ARRAY['jobs', 'dispatches', 'sessions', 'effects', 'entries', 'payloads', 'resolved_waits', 'dead_letters', 'topic_keys'] LOOP
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
-- over by a job that resumes this one.
CREATE POLICY worker_read ON {schema}.dispatches FOR SELECT TO {role_worker} USING (
    kind = 'request' AND topic = ANY ((SELECT {schema}.quipu_topics())::text[])
    OR kind = 'start' AND undo AND EXISTS (
        SELECT FROM {schema}.jobs j JOIN {schema}.effects e ON e.n = j.n AND e.class = 'undo' WHERE j.id = sender));
CREATE POLICY worker_run ON {schema}.dispatches FOR UPDATE TO {role_worker}
    USING (kind = 'request' AND topic = ANY ((SELECT {schema}.quipu_topics())::text[]));

-- It sees all sessions, and renews and ends those of its login. A session is forgotten by an engine, which sees all
-- that it may still hold.
CREATE POLICY worker_read ON {schema}.sessions FOR SELECT TO {role_worker} USING (true);
CREATE POLICY worker_open ON {schema}.sessions FOR INSERT TO {role_worker} WITH CHECK (login = session_user AND NOT engine);
CREATE POLICY worker_keep ON {schema}.sessions FOR UPDATE TO {role_worker}
    USING (login = session_user) WITH CHECK (login = session_user AND NOT engine);

-- The effects of its topics, also after the request has gone: their end is recorded, late.
CREATE POLICY worker_effects ON {schema}.effects TO {role_worker}
    USING (topic = ANY ((SELECT {schema}.quipu_topics())::text[]));

-- Of the journal it reads the chains of these effects, and what came to a durable function of its topics. It adds to
-- the chains of its requests, and never to a main chain.
CREATE POLICY worker_read ON {schema}.entries FOR SELECT TO {role_worker} USING (
    CASE WHEN chain = '00000000-0000-0000-0000-000000000000'
    THEN EXISTS (SELECT FROM {schema}.resolved_waits w WHERE w.n = entries.n AND w.seq = entries.seq)
    ELSE EXISTS (SELECT FROM {schema}.effects e WHERE e.n = entries.n AND e.request = entries.chain) END);
CREATE POLICY worker_add ON {schema}.entries FOR INSERT TO {role_worker} WITH CHECK (
    chain <> '00000000-0000-0000-0000-000000000000' AND (
        EXISTS (SELECT FROM {schema}.jobs j JOIN {schema}.dispatches d ON d.job = j.id WHERE j.n = entries.n AND d.guid = entries.chain)
        OR EXISTS (SELECT FROM {schema}.effects e WHERE e.n = entries.n AND e.request = entries.chain)));
CREATE POLICY worker_read ON {schema}.resolved_waits FOR SELECT TO {role_worker} USING (EXISTS (
    SELECT FROM {schema}.jobs j JOIN {schema}.dispatches d ON d.job = j.id WHERE j.n = resolved_waits.n AND d.guid = resolved_waits.request));

-- Large outputs, of jobs with a request of its topics.
CREATE POLICY worker_add ON {schema}.payloads FOR INSERT TO {role_worker} WITH CHECK (EXISTS (
    SELECT FROM {schema}.jobs j JOIN {schema}.dispatches d ON d.job = j.id WHERE j.n = payloads.n));

-- A late outcome ends the dead letter of its request. A message that cannot be read gets one.
CREATE POLICY worker_read ON {schema}.dead_letters FOR SELECT TO {role_worker} USING (EXISTS (
    SELECT FROM {schema}.dispatches d WHERE d.job = dead_letters.job AND d.guid = dead_letters.guid));
CREATE POLICY worker_end ON {schema}.dead_letters FOR UPDATE TO {role_worker} USING (EXISTS (
    SELECT FROM {schema}.dispatches d WHERE d.job = dead_letters.job AND d.guid = dead_letters.guid));
CREATE POLICY worker_add ON {schema}.dead_letters FOR INSERT TO {role_worker} WITH CHECK (state = 'open');

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
CREATE POLICY client_read ON {schema}.dispatches FOR SELECT TO {role_client} USING (
    kind IN ('signal', 'interrupt') OR kind = 'start' AND topic = 'ask');
CREATE POLICY client_lock ON {schema}.dispatches FOR UPDATE TO {role_client} USING (
    kind IN ('signal', 'interrupt') OR kind = 'start' AND topic = 'ask') WITH CHECK (false);
CREATE POLICY client_add ON {schema}.dispatches FOR INSERT TO {role_client} WITH CHECK (
    held IS NULL AND sender IS NULL AND holder IS NULL AND session IS NULL AND NOT undo AND NOT dead AND (
        kind = 'interrupt'
        OR kind = 'signal' AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = dispatches.job)
        OR kind = 'start' AND topic = 'ask' AND guid = job AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = dispatches.job)));
