-- The rights of the group roles of one space (S8). {schema} is its schema, {role_x} the role x, {all} all of them. Only
-- the owner can change journaled entries, and only retention and the owner delete them and jobs.
REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {all};
-- Nobody needs a type to read or to write. Who may use one can make a table with it, on which later migrations fail.
DO $$
DECLARE
    t regtype;
BEGIN
    FOR t IN SELECT oid FROM pg_type WHERE typnamespace = '{name}'::regnamespace AND typelem = 0 LOOP
        EXECUTE format('REVOKE ALL ON TYPE %s FROM PUBLIC', t);
    END LOOP;
END $$;
GRANT ALL ON SCHEMA {schema} TO {role_owner};
GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role_owner};
GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO {role_owner};
GRANT ALL ON ALL FUNCTIONS IN SCHEMA {schema} TO {role_owner};
GRANT USAGE ON SCHEMA {schema} TO {all};
GRANT EXECUTE ON FUNCTION {schema}.micros(), {schema}.quipu_topics(), {schema}.quipu_undoes(uuid), {schema}.quipu_taken(uuid, bigint), {schema}.server_system(), {schema}.server_timeline(),
    {schema}.in_doubt(uuid), {schema}.job_waits(uuid, text, text) TO {all};
GRANT SELECT ON {schema}.space, {schema}.space_entries TO {all};

-- engine: starts, commits, delivers signals, sweeps, deploys. StartTx and SignalTx in a caller's transaction need its
-- rights. operator: acts on dead letters, interrupts, resumes. What it decides is what an engine would write, so it
-- has the same tables, but no sessions: it takes no work.
GRANT SELECT, INSERT ON {schema}.entries, {schema}.resolved_waits TO {role_engine}, {role_operator};
GRANT SELECT, INSERT, UPDATE ON
    {schema}.jobs, {schema}.instances, {schema}.flows, {schema}.effects, {schema}.dead_letters TO {role_engine}, {role_operator};
GRANT SELECT, INSERT, UPDATE, DELETE ON
    {schema}.dispatches, {schema}.receipts, {schema}.waits, {schema}.signals TO {role_engine}, {role_operator};
GRANT SELECT, DELETE ON {schema}.batches TO {role_engine}, {role_operator};
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.sessions TO {role_engine};
GRANT SELECT, UPDATE (build) ON {schema}.sessions TO {role_operator}; -- a commit locks the sessions that it works for
GRANT SELECT, INSERT ON {schema}.payloads TO {role_engine}, {role_operator};
GRANT SELECT ON {schema}.partitions TO {role_engine}, {role_operator};
GRANT SELECT, INSERT, UPDATE ON {schema}.traces TO {role_engine};
-- It says that it lives, and that the database is another one; it accepts only a promotion without a loss (S13).
GRANT UPDATE (beat, halted, epoch, timeline) ON {schema}.space TO {role_engine};
GRANT UPDATE (beat) ON {schema}.space TO {role_operator};
GRANT SELECT, USAGE ON
    {schema}.numbers_never, {schema}.numbers_days, {schema}.numbers_months, {schema}.numbers_years
    TO {role_engine}, {role_operator};
GRANT INSERT ON {schema}.space_entries TO {role_engine}, {role_operator};
GRANT UPDATE (chain_seq, chain_hash) ON {schema}.space TO {role_engine}, {role_operator};
GRANT SELECT ON {schema}.keys TO {role_engine}, {role_operator};
GRANT SELECT, INSERT ON {schema}.topic_keys TO {role_engine}, {role_operator};
GRANT SELECT ON {schema}.tokens TO {role_engine}, {role_operator}; -- they serve the HTTP API; tokens are made by the owner

-- Whoever commits writes markers (J4), under the name of its login: that column is nobody's to write.
GRANT INSERT (session, seq, at, taken) ON {schema}.batches TO {role_engine}, {role_operator}, {role_worker}, {role_client};

-- Of tables that they share with others workers and clients get columns, not the table: not those that say who wrote a
-- row and when, nor the ids that are handed out; and so they cannot lock the table against others either.

-- worker: sessions, leases, effects, payloads, of the topics of its login (see the policies). Of a request's row it
-- moves what a run changes: who has it, when it is due, how often it ran, and the head of its effects. It can lock
-- a job, and its policy lets it change none.
GRANT SELECT, INSERT (n, chain, seq, body, hash, mac) ON {schema}.entries TO {role_worker};
GRANT INSERT ON {schema}.payloads TO {role_worker};
GRANT SELECT, UPDATE (trace) ON {schema}.jobs TO {role_worker};
GRANT SELECT, UPDATE (next_at, held, dead, turn_sent, runs, holder, session, fence, effects_seq, effects_hash, undo, rev)
    ON {schema}.dispatches TO {role_worker};
GRANT SELECT, INSERT (name, build, roles, topics, early, lanes, engine, lease, renewed_at, since), UPDATE (early, died_at, renewed_at, since, ran, early_runs, dead, withdrawn,
        troubles, busy, busy_job, busy_message)
    ON {schema}.sessions TO {role_worker};
GRANT SELECT, INSERT, UPDATE (state, result, error, fence, holder, turn, until, vouched) ON {schema}.effects TO {role_worker};
GRANT SELECT, INSERT (job, guid, kind, activity, dad, reason, message, ledger, state, raw, stray, at), UPDATE (state)
    ON {schema}.dead_letters TO {role_worker};
GRANT SELECT ON {schema}.resolved_waits, {schema}.topic_keys TO {role_worker};

-- client: asks for starts, signals and interrupts, by rows that an engine handles, and reads results. It can lock a
-- job, and its policies let it change none. It sees no keys, and writes no entry and no ledger.
GRANT SELECT ON {schema}.entries, {schema}.flows TO {role_client};
GRANT SELECT, UPDATE (trace) ON {schema}.jobs TO {role_client};
GRANT SELECT, INSERT, UPDATE (rev) ON {schema}.dispatches TO {role_client};
GRANT SELECT, INSERT (guid, job, state) ON {schema}.signals TO {role_client};
GRANT SELECT ON {schema}.receipts, {schema}.dead_letters TO {role_client};
GRANT SELECT, UPDATE (build) ON {schema}.sessions TO {role_client}; -- as for the operator, and without a policy it sees none

-- retention: turns closed jobs whose time has passed into tombstones, removes their open rows, and ends old
-- tombstones (J7, W11), and bounds stray dead letters (S15), see the policies. Dropping partitions needs the owner's rights.
GRANT SELECT, DELETE ON {schema}.dead_letters, {schema}.dispatches, {schema}.waits TO {role_retention};
GRANT SELECT, UPDATE (state, expires_at), DELETE ON {schema}.jobs TO {role_retention};
GRANT UPDATE (floor, dropped) ON {schema}.space TO {role_retention};
GRANT SELECT ON {schema}.partitions TO {role_retention};

-- verifier: reads, but no secret; and partitions through their tables alone, so that no view of its own keeps one.
GRANT SELECT ON
    {schema}.jobs, {schema}.dispatches, {schema}.entries, {schema}.effects, {schema}.payloads, {schema}.instances, {schema}.receipts,
    {schema}.resolved_waits, {schema}.waits, {schema}.dead_letters, {schema}.signals, {schema}.batches, {schema}.sessions, {schema}.flows,
    {schema}.traces, {schema}.partitions, {schema}.worker_topics TO {role_verifier};
