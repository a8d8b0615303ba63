-- 0001: the tables of one space (J7). A partitioned table is empty itself: partitions/partition.sql makes its
-- partitions, with their storage settings. Times are microseconds since 1970 by the database's clock (J5); a NULL
-- time is "never".

CREATE FUNCTION micros() RETURNS bigint LANGUAGE sql VOLATILE
    RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- The identity of the server (S13). The control file would give the timeline late after a promotion. A standby has
-- none of its own: 0.
CREATE FUNCTION server_system() RETURNS bigint LANGUAGE sql STABLE
    RETURN (SELECT system_identifier FROM pg_control_system());
CREATE FUNCTION server_timeline() RETURNS bigint LANGUAGE sql STABLE
    RETURN CASE WHEN pg_is_in_recovery() THEN 0
           ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint END;

-- Checks of a column's value are in its domain: a session reads those once, but a table's checks with every
-- statement that writes the table (W12).
CREATE DOMAIN digest AS bytea CONSTRAINT digest_bytes CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN generation AS bigint CONSTRAINT generation_positive CHECK (VALUE > 0);
CREATE DOMAIN job_state AS text CONSTRAINT job_state_known
    CHECK (VALUE IN ('open', 'completed', 'failed', 'interrupted', 'quarantined', 'expired'));
CREATE DOMAIN elements AS integer CONSTRAINT open_elements CHECK (VALUE >= 0);
CREATE DOMAIN semaphore AS bigint CONSTRAINT semaphore_range CHECK (VALUE >= 0);

-- The digits of an activity ledger (1.2, C4).
CREATE DOMAIN activity_ledger AS bigint
    CONSTRAINT ledger_width CHECK (VALUE >= 0 AND VALUE < 1000000000000000)
    CONSTRAINT ledger_state CHECK (VALUE / 100000000000000 <= 2)
    CONSTRAINT ledger_markers CHECK (VALUE / 100000000000 % 10 <= 1 AND VALUE / 10000000000 % 10 <= 1)
    CONSTRAINT ledger_trigger CHECK (VALUE / 100000000000000 <> 1 OR VALUE / 100000000000 % 1000 = 11)
    CONSTRAINT ledger_leg1 CHECK (VALUE / 100000000000 % 10 = 0 OR VALUE / 1000000000000 % 100 >= 1)
    CONSTRAINT ledger_final CHECK (VALUE / 100000000000000 <> 2 OR VALUE / 100000000000 % 10 = 1);

-- The digits of a GUID ledger (1.3, C4).
CREATE DOMAIN guid_ledger AS bigint
    CONSTRAINT receipt_width CHECK (VALUE >= 0 AND VALUE < 1000000000000)
    CONSTRAINT receipt_markers CHECK (VALUE / 100000000000 <= 1 AND VALUE / 10000000000 % 10 <= 1
        AND VALUE / 1000000000 % 10 <= 1 AND VALUE / 100000000 % 10 <= 1)
    CONSTRAINT receipt_steps CHECK (VALUE / 1000000000 % 10 <= VALUE / 10000000000 % 10
        AND VALUE / 100000000000 <= VALUE / 1000000000 % 10
        AND VALUE / 100000000 % 10 <= VALUE / 100000000000);

CREATE TABLE space (
    single  boolean PRIMARY KEY DEFAULT true CHECK (single),
    id      uuid    NOT NULL DEFAULT gen_random_uuid(), -- tells this database from another one that has a space of the same name
    name    text    NOT NULL,
    epoch   bigint  NOT NULL DEFAULT 1 CHECK (epoch > 0),
    expire  bigint  NOT NULL DEFAULT 2592000000000 CHECK (expire >= 0), -- how long closed jobs are kept whose flow does not say it, in microseconds; 0: for good
    floor   bigint  NOT NULL DEFAULT 0 CHECK (floor BETWEEN 0 AND 1000000000000), -- every job begins in a generation above it (W11); above the limit none could
    signed  boolean NOT NULL DEFAULT true, -- messages carry MACs (S1, S3)
    private boolean NOT NULL DEFAULT false, -- keys of jobs and signals are kept as digests (S15)
    dropped bigint  NOT NULL DEFAULT 0 CHECK (dropped BETWEEN 0 AND 1000000000000000), -- how many stray dead letters retention has dropped (S15)
    chain_seq  bigint NOT NULL DEFAULT 0 CHECK (chain_seq >= 0), -- chain_*: the head of the space's own chain (S7)
    chain_hash digest, -- NULL while the chain is empty
    version integer NOT NULL,
    -- The database that the space was last accepted in (S13): the cluster's system identifier and its timeline. beat
    -- is raised about once a second, so it says how new what is stored here is. halted says why nothing may be
    -- decided, promote that a promotion without a loss is accepted beforehand. Guarded effects of jobs that were
    -- started up to doubt may have been made although they are not recorded; 0: none.
    system   bigint  NOT NULL DEFAULT server_system(),
    timeline bigint  NOT NULL DEFAULT server_timeline(),
    beat     bigint  NOT NULL DEFAULT 0 CHECK (beat >= 0),
    halted   text,
    promote  boolean NOT NULL DEFAULT false,
    doubt    bigint  NOT NULL DEFAULT 0 CHECK (doubt >= 0)
) WITH (fillfactor = 10);

-- in_doubt says whether a job, or one that it goes back to, was started up to the time of space.doubt (S13).
CREATE FUNCTION in_doubt(job uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    until bigint := (SELECT s.doubt FROM space s);
BEGIN
    RETURN until > 0 AND EXISTS (
        WITH RECURSIVE back (id, started, parent_job, root) AS (
            SELECT j.id, j.started, j.parent_job, j.root FROM jobs j WHERE j.id = job
            UNION
            SELECT j.id, j.started, j.parent_job, j.root FROM back b JOIN jobs j ON j.id IN (b.parent_job, b.root)
        )
        SELECT FROM back WHERE started <= until);
END $$;

-- The space's own chain (S7): what operators decided about the space itself. Insert only.
CREATE TABLE space_entries (
    seq  bigint NOT NULL PRIMARY KEY CHECK (seq > 0),
    body bytea  NOT NULL,
    hash digest NOT NULL,
    xid  xid8   NOT NULL DEFAULT pg_current_xact_id()
);

-- The root secrets of the space (S1). A key signs from signs on; from ends on, its MACs of messages do not hold. No
-- row is deleted, because the MACs of entries are checked with old keys, too.
CREATE TABLE keys (
    id     integer PRIMARY KEY CHECK (id > 0),
    secret bytea   NOT NULL CHECK (octet_length(secret) = 32),
    made   bigint  NOT NULL,
    signs  bigint  NOT NULL,
    ends   bigint
);

-- What is derived from them for each topic, for logins that may not read the secrets (S1).
CREATE TABLE topic_keys (
    topic text    NOT NULL,
    id    integer NOT NULL REFERENCES keys,
    key   bytea   NOT NULL CHECK (octet_length(key) = 32),
    signs bigint  NOT NULL,
    ends  bigint,
    PRIMARY KEY (topic, id)
);

-- Tokens of the HTTP API (O11). Only their SHA-256 stands here: from it nobody makes the token. Who has one acts with
-- its name and its role, until it ends.
CREATE TABLE tokens (
    hash bytea  NOT NULL PRIMARY KEY CHECK (octet_length(hash) = 32),
    name text   NOT NULL UNIQUE,
    role text   NOT NULL CHECK (role IN ('viewer', 'client', 'operator')),
    made bigint NOT NULL,
    ends bigint
);

CREATE TABLE flows (
    name       text    NOT NULL,
    version    text    NOT NULL,
    digest     bytea   NOT NULL CHECK (octet_length(digest) = 32),
    definition bytea   NOT NULL,
    active     boolean NOT NULL,
    deployed   bigint  NOT NULL,
    scheduled  bigint  NOT NULL, -- up to when scheduled starts of the flow were made, when this was the active version
    PRIMARY KEY (name, version)
);
CREATE UNIQUE INDEX flows_active ON flows (name) WHERE active;

-- The numbers of jobs (W10, W11). Each class of retention has its own range, so that the jobs of one partition are
-- kept for about the same time.
CREATE SEQUENCE numbers_never;
CREATE SEQUENCE numbers_days   MINVALUE 100000000000000000;
CREATE SEQUENCE numbers_months MINVALUE 200000000000000000;
CREATE SEQUENCE numbers_years  MINVALUE 300000000000000000;

-- The partitions of the history. Partition p has the jobs with n / 10 million = p. opened is when about its first
-- number was drawn, and opener the transaction that recorded that; NULL: not yet. Below the number live it has only
-- tombstones.
CREATE TABLE partitions (
    p      bigint NOT NULL PRIMARY KEY,
    opened bigint,
    opener xid8,
    live   bigint NOT NULL
);

-- One row with no next per key: the job that has it, or its tombstone. Jobs that another has resumed, and tombstones
-- whose key was used again, have a next: late messages are recognized by them (C5), and retention archives their
-- history. No index covers a value that messages change but the close, so that the other updates stay HOT. expires_at
-- is when a closed job becomes a tombstone, and then when the tombstone ends.
--
-- n is the job's number in this schema (W10). The history tables are keyed by it, so that new rows go to the right
-- edge of every index, and partitioned by it. It grows with time, is drawn at inception, changes when the job is
-- moved to another partition (W11), and is stored nowhere else: messages and people use the id.
CREATE TABLE jobs (
    id              uuid   NOT NULL PRIMARY KEY,
    n               bigint NOT NULL UNIQUE,
    key             text   NOT NULL,
    generation      generation NOT NULL,
    flow_name       text   NOT NULL,
    flow_version    text   NOT NULL,
    flow_digest     digest NOT NULL,
    trigger         text   NOT NULL,
    state           job_state NOT NULL,
    semaphore       semaphore NOT NULL,
    head_seq        bigint NOT NULL,
    head_hash       digest NOT NULL,
    closed_seq      bigint,
    tasks_seq       bigint,
    started         bigint NOT NULL,
    closed          bigint,
    tags            text   NOT NULL DEFAULT '', -- sorted, one in a line
    trace           text   NOT NULL,
    expires_at      bigint,
    parent_space    text, -- parent_*, all or none: the await, or the request of the function, that started the job
    parent_job      uuid,
    parent_activity text,
    parent_dad      text,
    parent_leg1     uuid,
    parent_turn     integer, -- 0: a durable function is the parent, no await
    parent_awaited  boolean,
    parent_depth    integer, -- how many jobs wait for this one, one above the other
    root            uuid,  -- the first of the generations that the job resumes; NULL: it resumes none
    forked          uuid,  -- the job from one of whose entries it, or the fork that it resumes, goes on; NULL: none
    origin          bytea, -- what it resumes or goes on from, as its first entry says it
    next            uuid   -- the job that resumes this one; zero: a tombstone whose key was used again
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
CREATE UNIQUE INDEX jobs_key ON jobs (key) WHERE next IS NULL;
CREATE INDEX jobs_past ON jobs (key, generation) WHERE next IS NOT NULL;
CREATE INDEX jobs_started ON jobs (started, id);
CREATE INDEX jobs_tags ON jobs USING gin (string_to_array(tags, E'\n')) WITH (fastupdate = off) WHERE tags <> '';
CREATE INDEX jobs_expires ON jobs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX jobs_closed ON jobs (closed, id) WHERE closed IS NOT NULL;
-- The jobs that are open or have not completed, for lists of them (O7) and for gauge_jobs (O4). A job that completes,
-- as most do, leaves it. CASE keeps the planner from taking it for other statements about open jobs.
CREATE INDEX jobs_standing ON jobs (flow_name, state, started, id)
    WHERE CASE WHEN state IN ('open', 'failed', 'interrupted', 'quarantined') THEN true END;
CREATE INDEX jobs_parent ON jobs (parent_job, started, id) WHERE parent_job IS NOT NULL;
CREATE INDEX jobs_forked ON jobs (forked) WHERE forked IS NOT NULL; -- what goes on from a job keeps it
CREATE INDEX jobs_undo ON jobs (parent_job) WHERE flow_name = 'quipu_undo'; -- what is undone of a job keeps it

-- The activity ledgers (1.2), with the checks of rule C4. dad is the first 16 bytes of the address's SHA-256. A row
-- with ledger 0 is no instance: it only points to the output of a pass or an element. The order of the columns leaves no
-- room between them, and has side by side what the end of an activity changes: less is written, also to the WAL.
CREATE TABLE instances (
    n          bigint  NOT NULL,
    dad        uuid    NOT NULL,
    size       bigint  NOT NULL DEFAULT 0,
    ledger     activity_ledger NOT NULL,
    result_seq integer NOT NULL DEFAULT 0,
    code       integer NOT NULL DEFAULT 0,
    open       elements NOT NULL DEFAULT 0,
    count      integer NOT NULL DEFAULT 0,
    turn       integer NOT NULL DEFAULT 0,
    attempt    integer NOT NULL DEFAULT 0,
    is_join    boolean NOT NULL DEFAULT false,
    activity   text    NOT NULL,
    dad_text   text    NOT NULL,
    leg1       uuid,
    child      uuid,
    PRIMARY KEY (n, activity, dad),
    CONSTRAINT ledger_join CHECK (is_join OR ledger / 100000000 % 1000 = 0)
) PARTITION BY RANGE (n);
CREATE INDEX instances_child ON instances (n) WHERE child IS NOT NULL;

-- The GUID ledgers (1.3), with the checks of rule C4.
CREATE TABLE receipts (
    n       bigint NOT NULL,
    guid    uuid   NOT NULL,
    ledger  guid_ledger NOT NULL,
    verdict text   NOT NULL CHECK (verdict IN ('handled', 'stale')),
    seq     bigint NOT NULL,
    PRIMARY KEY (n, guid),
    CONSTRAINT receipt_stale CHECK (verdict <> 'stale' OR ledger = 0)
) PARTITION BY RANGE (n);

-- The journal: insert only. Bodies are not compressed: most stand in the row,
-- and the rest is read whole. mac proves to an engine that an engine wrote the entry (S9); NULL on the chains of
-- effects, and in a space without keys.
CREATE TABLE entries (
    n     bigint NOT NULL,
    seq   bigint NOT NULL CHECK (seq > 0),
    xid   xid8   NOT NULL DEFAULT pg_current_xact_id(),
    chain uuid   NOT NULL,
    hash  digest NOT NULL,
    mac   bytea  CHECK (octet_length(mac) <= 64),
    body  bytea  NOT NULL,
    PRIMARY KEY (n, chain, seq)
) PARTITION BY RANGE (n);
ALTER TABLE entries ALTER COLUMN body SET STORAGE EXTERNAL;

-- The dispatch rows (T1). job is the addressee: a job, which may not have begun yet, or the mailbox of a signal.
-- sender is set on the start of a child that was not handled yet: the job that awaits the child (C15). pauses
-- (JSON) and undo belong to requests of durable functions (3.5); with undo, input keeps the request's body after an
-- answer replaced it. A start with undo starts a job of compensations; its sender is the job whose function they
-- belong to. A start with the topic ask is what a client asks for, under an id of its own (S8). Every write of a row
-- raises rev, so that a decision on an earlier reading can be checked (W6). The order of the columns leaves no room
-- between them.
CREATE TABLE dispatches (
    guid         uuid    NOT NULL,
    job          uuid    NOT NULL,
    origin       bigint  NOT NULL,
    rev          bigint  NOT NULL DEFAULT 0,
    fence        bigint  NOT NULL,
    effects_seq  bigint  NOT NULL,
    element      integer NOT NULL,
    publication  integer NOT NULL,
    turn         integer NOT NULL,
    turn_sent    integer NOT NULL,
    attempt      integer NOT NULL,
    runs         integer NOT NULL,
    session      bigint,
    next_at      bigint,
    published_at bigint,
    within_at    bigint,
    sender       uuid,
    dead         boolean NOT NULL,
    undo         boolean NOT NULL,
    kind         text    NOT NULL,
    activity     text    NOT NULL,
    dad          text    NOT NULL,
    topic        text    NOT NULL,
    holder       text,
    held         text,
    effects_hash bytea,
    pauses       bytea,
    body         bytea,
    input        bytea,
    PRIMARY KEY (job, guid)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
CREATE INDEX dispatches_due ON dispatches (next_at) WHERE held IS NULL AND next_at IS NOT NULL;
CREATE INDEX dispatches_within ON dispatches (within_at) WHERE within_at IS NOT NULL;
CREATE INDEX dispatches_mail ON dispatches (job) WHERE kind = 'signal' AND held IS NULL;
CREATE INDEX dispatches_session ON dispatches (session) WHERE holder IS NOT NULL; -- such a row is mostly not due
CREATE INDEX dispatches_sender ON dispatches (sender) WHERE sender IS NOT NULL;

-- The topics of workers' logins (S8). Policies of row-level security, and whoever else needs to know the topics of the
-- session's login, ask quipu_topics. The policies are made with the roles (roles/roles.sql).
CREATE TABLE worker_topics (
    login text NOT NULL,
    topic text NOT NULL,
    PRIMARY KEY (login, topic)
);
CREATE FUNCTION quipu_topics() RETURNS text[] LANGUAGE sql STABLE SECURITY DEFINER
    RETURN ARRAY(SELECT t.topic FROM worker_topics t WHERE t.login = session_user);

-- The sessions of processes (W8). The holder of a row keeps it while the session that the row names exists and is
-- not dead. lease is how long, in microseconds, a session lives without a renewal; since is when it began to be
-- renewed without a gap. Engines share the lanes; all processes have the same number of them. name, build, roles
-- and topics (those with a handler) are for people. early are those whose runs may begin before their causes have
-- committed (L4): a session that was declared dead stays for a minute, freed of what it held, so that these topics
-- are early nowhere meanwhile.
CREATE TABLE sessions (
    id         bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text    NOT NULL,
    build      text    NOT NULL,
    roles      text[]  NOT NULL,
    topics     text[]  NOT NULL,
    early      text[]  NOT NULL DEFAULT '{}',
    lanes      integer NOT NULL,
    engine     boolean NOT NULL,
    lease      bigint  NOT NULL CHECK (lease > 0),
    renewed_at bigint  NOT NULL,
    since      bigint  NOT NULL,
    ran        bigint[] NOT NULL DEFAULT '{}', -- runs of each of its topics that have ended in the last minute (O9)
    -- of each of its early topics: kept, late and dropped runs of the last minute, and the mean run in nanoseconds
    early_runs bigint[] NOT NULL DEFAULT '{}',
    troubles   text[]  NOT NULL DEFAULT '{}', -- what keeps its messages from their way, each a JSON object
    -- for how many microseconds it has been deciding on one message, if that is long; 0 if it is not
    busy         bigint NOT NULL DEFAULT 0,
    busy_job     uuid,
    busy_message uuid,
    dead       boolean NOT NULL DEFAULT false,
    died_at    bigint  NOT NULL DEFAULT 0, -- when others declared it dead
    freed      boolean NOT NULL DEFAULT false,
    login      text    NOT NULL DEFAULT session_user, -- a worker's login changes its own sessions alone (S8)
    withdrawn  text[]  NOT NULL DEFAULT '{}' -- those of its topics that it serves no more, because its login has lost them (S8)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The open waits for signals (1.11). Deleting a wait decides between its signal and its timer. mailbox stands for
-- (topic, key); its oldest wait comes first in the index. request is that of the durable function that waits, NULL
-- for a hook.
CREATE TABLE waits (
    job      uuid    NOT NULL,
    guid     uuid    NOT NULL,
    mailbox  uuid    NOT NULL,
    activity text    NOT NULL,
    dad      text    NOT NULL,
    topic    text    NOT NULL,
    key      text    NOT NULL,
    repeat   boolean NOT NULL,
    max_age  bigint  NOT NULL CHECK (max_age >= 0),
    count    bigint  NOT NULL CHECK (count >= 0),
    since    bigint  NOT NULL,
    origin   bigint  NOT NULL,
    request  uuid,
    PRIMARY KEY (job, guid)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX waits_mailbox ON waits (mailbox, since, guid);

-- The resolved waits of durable functions (E12): insert only. guid is the message that resolved the wait, seq the
-- entry of the main chain that recorded it. A replay of the function reads them by request, even after the row of
-- the request has gone.
CREATE TABLE resolved_waits (
    n        bigint NOT NULL,
    request  uuid   NOT NULL,
    guid     uuid   NOT NULL,
    kind     text   NOT NULL CHECK (kind IN ('sleep', 'signal', 'child')),
    name     text   NOT NULL,
    position text   NOT NULL,
    seq      bigint NOT NULL,
    PRIMARY KEY (n, guid)
) PARTITION BY RANGE (n);
CREATE INDEX resolved_waits_request ON resolved_waits (n, request, seq);

-- The signals from outside, by which a repeated one is recognized, with what became of them; also the interrupts
-- that met a closed job (W12), and the starts that clients asked for (S8), with why one was refused. job is what the
-- message is addressed to. It is part of the key: a client writes no record without the row that it is about, and the
-- address of a row is no one's choice who wants it to be handled (S8).
CREATE TABLE signals (
    guid   uuid   NOT NULL,
    job    uuid   NOT NULL,
    state  text   NOT NULL CHECK (state IN ('consumed', 'kept', 'missed')),
    at     bigint NOT NULL DEFAULT micros(),
    reason text,
    PRIMARY KEY (guid, job)
);
CREATE INDEX signals_at ON signals (at);

-- Effects by their key (3.1). seq is the entry of the request's chain that first named the effect. turn and until
-- belong to a started effect: the turn of its run, and the start plus the timeout of the attempt, if any (E4).
-- position is the place of the call in a durable function (E15), '' elsewhere. vouched: an operator confirmed the
-- result (3.3). not_done: how often the effect was recorded as not done before (E5). topic is that of the request,
-- for the logins of workers. A key belongs to one request. That request is in the primary key, because a worker's login
-- chooses the key: so it takes no place from an effect of another topic (S8).
CREATE TABLE effects (
    n       bigint NOT NULL,
    key     bytea  NOT NULL CHECK (octet_length(key) = 32),
    request uuid   NOT NULL,
    seq     bigint NOT NULL,
    name    text   NOT NULL,
    class   text   NOT NULL,
    not_done bigint NOT NULL,
    state   text   NOT NULL CHECK (state IN ('started', 'completed', 'not_done')),
    result  bytea,
    error   bytea,
    fence   bigint NOT NULL,
    holder  text   NOT NULL,
    turn    bigint NOT NULL,
    until   bigint,
    position text   NOT NULL DEFAULT '',
    vouched boolean NOT NULL DEFAULT false,
    topic   text   NOT NULL DEFAULT '',
    PRIMARY KEY (n, key, request)
) PARTITION BY RANGE (n);
-- quipu_undoes says whether a job has orders to undo effects of the topics of the session's login. As a function it sees
-- the table of effects without the policies that ask it.
CREATE FUNCTION quipu_undoes(job uuid) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
    RETURN EXISTS (SELECT FROM jobs j JOIN effects e ON e.n = j.n AND e.class = 'undo' AND e.topic = ANY (quipu_topics()) WHERE j.id = job);
CREATE INDEX effects_request ON effects (n, request, seq) WHERE request IS NOT NULL; -- always so: it is not to serve look-ups by n and key
CREATE INDEX effects_key ON effects ((n >> 16), key); -- for who knows the key alone: new rows stay close together, see effects_by_key

-- Outputs that are sent by digest (E6).
CREATE TABLE payloads (
    n      bigint NOT NULL,
    digest bytea  NOT NULL CHECK (octet_length(digest) = 32),
    body   bytea  NOT NULL,
    PRIMARY KEY (n, digest)
) PARTITION BY RANGE (n);

-- Dead letters (E10). A letter of a foreign message has no row. stray is the size in bytes of one for whose message no
-- row was read: retention bounds these, by number and size (S15). It is null for the others, and becomes so when an
-- operator decides on its row.
CREATE TABLE dead_letters (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job      uuid   NOT NULL,
    guid     uuid   NOT NULL,
    kind     text   NOT NULL,
    activity text   NOT NULL,
    dad      text   NOT NULL,
    reason   text   NOT NULL,
    message  text   NOT NULL,
    ledger   bigint NOT NULL,
    raw      bytea,
    stray    bigint,
    at       bigint NOT NULL,
    state    text   NOT NULL DEFAULT 'open'
        CHECK (state IN ('open', 'retried', 'resolved', 'failed', 'answered'))
);
CREATE INDEX dead_letters_row ON dead_letters (job, guid);
CREATE INDEX dead_letters_open ON dead_letters (reason) WHERE CASE WHEN state = 'open' THEN true END; -- for gauge_dead alone, as jobs_standing
CREATE INDEX dead_letters_stray ON dead_letters (id) INCLUDE (stray) WHERE stray IS NOT NULL;

-- Up to which close the traces of jobs were sent (O2): an optimistic mark, since a commit may come later than its time.
CREATE TABLE traces (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    upto   bigint  NOT NULL
);

-- job_waits says what an open job waits for (O7): topic, a request for a worker; signal; timer, the end of a sleep;
-- child, a job that it awaits; person, a decision about a held message. name, if it is not '', is the topic of the
-- request or of the signal.
CREATE FUNCTION job_waits(of uuid, what text, name text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    CASE what
    WHEN 'topic' THEN
        RETURN EXISTS (SELECT FROM dispatches d WHERE d.job = of AND d.kind = 'request' AND (d.held IS NULL OR d.held = 'parallel')
            AND (name = '' OR d.topic = name));
    WHEN 'signal' THEN
        RETURN EXISTS (SELECT FROM waits w WHERE w.job = of AND (name = '' OR w.topic = name));
    WHEN 'timer' THEN
        RETURN EXISTS (SELECT FROM dispatches d WHERE d.job = of AND d.kind = 'wakeup' AND d.held IS NULL);
    WHEN 'child' THEN
        RETURN EXISTS (SELECT FROM dispatches d WHERE d.sender = of)
            OR EXISTS (SELECT FROM jobs c WHERE c.parent_job = of AND c.parent_awaited AND c.state IN ('open', 'quarantined'));
    WHEN 'person' THEN
        RETURN EXISTS (SELECT FROM dispatches d WHERE d.job = of AND d.held IN ('parked', 'stuck'));
    END CASE;
END $$;

-- Batch markers (J4). taken: a process that had to find out the outcome took the place of the batch's own marker,
-- so the batch was not committed. login is who wrote it: no role may say it, so that no marker of another login takes
-- the place of a batch, or stands for one. And workers and clients do not learn the sessions of other processes, also not
-- of those with the same login: they read a marker only through quipu_taken, by its session (S8).
CREATE TABLE batches (
    session uuid    NOT NULL,
    seq     bigint  NOT NULL,
    at      bigint  NOT NULL,
    xid     xid8    NOT NULL DEFAULT pg_current_xact_id(),
    taken   boolean NOT NULL DEFAULT false,
    login   text    NOT NULL DEFAULT session_user,
    PRIMARY KEY (session, seq, login)
);
CREATE INDEX batches_at ON batches (at);
CREATE FUNCTION quipu_taken(session uuid, seq bigint) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
    RETURN (SELECT b.taken FROM batches b WHERE b.session = quipu_taken.session AND b.seq = quipu_taken.seq AND b.login = session_user);

-- A statement takes many rows as one array of a composite type: the server reads it with one function, not with one
-- for each column. The columns are those of the lists in columns.go and written.go, in their order.
CREATE TYPE in_row AS (
    guid uuid, job uuid, kind text, activity text, dad text, topic text, element bigint, body bytea,
    next_at bigint, held text, dead boolean, publication bigint, published_at bigint, turn bigint,
    turn_sent bigint, attempt bigint, runs bigint, holder text, session bigint, fence bigint, within_at bigint,
    effects_seq bigint, effects_hash bytea, origin bigint, sender uuid, pauses bytea, undo boolean, input bytea,
    rev bigint
);
CREATE TYPE in_moved AS (
    job uuid, guid uuid, next_at bigint, held text, dead boolean, turn_sent bigint, runs bigint, holder text,
    session bigint, fence bigint, effects_seq bigint, effects_hash bytea, undo boolean
);
CREATE TYPE in_job AS (
    id uuid, key text, generation bigint, flow_name text, flow_version text, flow_digest bytea, state text,
    semaphore bigint, head_seq bigint, head_hash bytea, started bigint, tags text, trace text,
    parent_space text, parent_job uuid, parent_activity text, parent_dad text, parent_leg1 uuid,
    parent_turn bigint, parent_awaited boolean, parent_depth bigint, root uuid, forked uuid, origin bytea
);
CREATE TYPE in_wait AS (
    job uuid, guid uuid, activity text, dad text, topic text, key text, repeat boolean, max_age bigint,
    count bigint, since bigint, origin bigint, request uuid
);
CREATE TYPE in_effect AS (
    key bytea, name text, class text, not_done bigint, state text, result bytea, error bytea, fence bigint,
    holder text, position text, vouched boolean
);
CREATE TYPE in_placed AS (
    job uuid, known bigint, activity text, dad uuid, is_join boolean, dad_text text, before bigint, ledger bigint,
    result_seq bigint, code bigint, leg1 uuid, open bigint, count bigint, size bigint, turn bigint,
    attempt bigint, child uuid
);
CREATE TYPE in_move AS (
    job uuid, known bigint, sem_before bigint, sem_after bigint, seq_before bigint, seq_after bigint, hash bytea, state text,
    closes boolean, close_seq bigint, tasks_seq bigint, guid uuid, fresh boolean, before bigint, after bigint,
    seq bigint, expires bigint, was_state text, was_hash bytea
);
CREATE TYPE in_head AS (
    job uuid, known bigint, semaphore bigint, before bigint, after bigint, hash bytea, was_state text, was_hash bytea
);
CREATE TYPE in_entry AS (
    job uuid, known bigint, chain uuid, seq bigint, body bytea, hash bytea, mac bytea
);
CREATE TYPE in_guard AS (
    id uuid, state text, semaphore bigint, seq bigint, hash bytea
);
