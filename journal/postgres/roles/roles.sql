-- The rights of the group roles of one space (4.5). {schema} is its schema, {role_x} the role x. Only the owner can
-- change journaled entries: the others insert and read them.
REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM
    {role_engine}, {role_worker}, {role_sealer}, {role_retention}, {role_verifier};
GRANT ALL ON SCHEMA {schema} TO {role_owner};
GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role_owner};
GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO {role_owner};
GRANT USAGE ON SCHEMA {schema} TO
    {role_engine}, {role_worker}, {role_sealer}, {role_retention}, {role_verifier};
GRANT EXECUTE ON FUNCTION {schema}.micros(), {schema}.server_system(), {schema}.server_timeline(), {schema}.in_doubt(uuid) TO
    {role_engine}, {role_worker}, {role_sealer}, {role_retention}, {role_verifier};
GRANT SELECT ON {schema}.space TO
    {role_engine}, {role_worker}, {role_sealer}, {role_retention}, {role_verifier};

-- engine: starts, commits, delivers signals, sweeps, deploys, acts on dead letters. StartTx and SignalTx in a
-- caller's transaction need its rights.
GRANT SELECT, INSERT ON {schema}.entries, {schema}.resolved_waits TO {role_engine};
GRANT SELECT, INSERT, UPDATE ON
    {schema}.jobs, {schema}.instances, {schema}.flows, {schema}.effects, {schema}.dead_letters TO {role_engine};
GRANT SELECT, INSERT, UPDATE, DELETE ON
    {schema}.dispatches, {schema}.receipts, {schema}.batches, {schema}.waits, {schema}.signals, {schema}.sessions
    TO {role_engine};
GRANT SELECT, INSERT ON {schema}.tombstones TO {role_engine};
GRANT SELECT ON {schema}.partitions TO {role_engine};
-- It says that it lives, and that the database is another one; it accepts only a promotion without a loss (S13).
GRANT UPDATE (beat, halted, epoch, timeline) ON {schema}.space TO {role_engine};
GRANT SELECT, USAGE ON
    {schema}.numbers_never, {schema}.numbers_days, {schema}.numbers_months, {schema}.numbers_years TO {role_engine};
GRANT SELECT, INSERT ON {schema}.payloads TO {role_engine};
GRANT SELECT ON {schema}.keys TO {role_engine};
GRANT SELECT, INSERT ON {schema}.topic_keys TO {role_engine};
GRANT SELECT ON {schema}.tokens TO {role_engine}; -- it serves the HTTP API; tokens are made by the owner

-- worker: sessions, leases, effects, payloads. Of a job it moves only the head, when it holds a request that ran
-- too often.
GRANT SELECT, INSERT ON {schema}.entries, {schema}.payloads TO {role_worker};
GRANT SELECT, UPDATE (head_seq, head_hash) ON {schema}.jobs TO {role_worker};
GRANT SELECT, UPDATE ON {schema}.dispatches TO {role_worker};
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.sessions TO {role_worker};
GRANT SELECT, INSERT, UPDATE ON {schema}.effects, {schema}.dead_letters TO {role_worker};
GRANT SELECT ON {schema}.instances, {schema}.receipts, {schema}.flows, {schema}.resolved_waits TO {role_worker};
GRANT SELECT, INSERT ON {schema}.batches TO {role_worker};
GRANT SELECT ON {schema}.topic_keys TO {role_worker};

-- sealer: reads heads and hashes.
GRANT SELECT ON {schema}.jobs, {schema}.entries TO {role_sealer};

-- retention: turns closed jobs whose time has passed into tombstones, removes their open rows, and ends old
-- tombstones (J7, W11), and bounds stray dead letters (S15). Dropping partitions needs the owner's rights.
GRANT SELECT, DELETE ON
    {schema}.dead_letters, {schema}.dispatches, {schema}.waits, {schema}.batches TO {role_retention};
GRANT SELECT, UPDATE, DELETE ON {schema}.jobs, {schema}.tombstones TO {role_retention};
GRANT UPDATE (floor, dropped) ON {schema}.space TO {role_retention};
GRANT SELECT ON {schema}.partitions TO {role_retention};

-- verifier: reads, but no secret.
GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role_verifier};
REVOKE ALL ON {schema}.keys, {schema}.topic_keys, {schema}.tokens FROM {role_verifier};
