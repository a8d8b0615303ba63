-- name: schema_version
-- reads the version, name and id of the space, its epoch and its beat; it runs before anything else.
SELECT version, name, id, epoch, beat FROM space

-- name: connection_settings
-- makes settings that last as long as the connection, and returns the number of its backend, and what the promise
-- rests on (S7): the settings of this connection, and those that are kept for the login's new ones. The login's name
-- is cast, since a new backend plans a join with the view pg_roles for milliseconds. $1 names, $2 values.
SELECT pg_backend_pid()::int8, (SELECT count(set_config(s.name, s.value, false)) FROM unnest($1::text[], $2::text[]) AS s (name, value)),
       current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
       current_setting('default_transaction_read_only'),
       (SELECT coalesce(string_agg(d.setconfig::text, ' ' ORDER BY d.setdatabase, d.setrole), '') FROM pg_catalog.pg_db_role_setting d
        WHERE d.setdatabase IN (0, (SELECT b.oid FROM pg_catalog.pg_database b WHERE b.datname = current_database()))
          AND d.setrole IN (0, to_regrole(quote_ident(session_user))))

-- name: connection_backend
-- returns the number of the backend that answers.
SELECT pg_backend_pid()::int8

-- name: preflight
-- reads the settings that the promise rests on (S7), and the session's user (S8).
SELECT current_setting('server_version_num')::int8, current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('synchronous_commit'), pg_is_in_recovery(), current_setting('data_checksums'),
       current_setting('server_version'), session_user::text

-- name: resolve_terminate
-- ends the backend of a commit with an unknown outcome, so that nothing waits for it (J4). $1 backend pid, $2 its
-- application name.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1::int8 AND application_name = $2::text

-- name: resolve_marker
-- waits for the batch of this marker, and takes the marker's place if the batch was not committed (J4). $1 session,
-- $2 seq.
INSERT INTO batches (session, seq, at, taken) VALUES ($1::uuid, $2::int8, micros(), true) ON CONFLICT DO NOTHING

-- name: resolve_read
-- says who wrote the marker of this login: taken means that the batch was not committed (J4). $1 session, $2 seq.
SELECT t FROM quipu_taken($1::uuid, $2::int8) AS t WHERE t IS NOT NULL

-- name: alone_lock
-- takes, if it is free, a lock for one process at a time, which the session keeps until it unlocks. $1 what is locked.
SELECT pg_try_advisory_lock(hashtextextended($1::text, 0))

-- name: alone_unlock
-- gives the lock back. $1 what is locked.
SELECT pg_advisory_unlock(hashtextextended($1::text, 0))

-- name: setting
-- sets a setting. $1 its name, $2 its value, $3 whether only until the transaction ends.
SELECT set_config($1::text, $2::text, $3::bool)

-- name: partitions_look
-- reads the state of each class of retention (W10, W11). $1 the first number of each class, $2 their sequences, $3
-- jobs of a partition, $4 numbers of a class. Returns, in the order of the classes: the last number drawn, null
-- before the first; the newest partition that may have jobs, and when it was opened, null until that is recorded;
-- the last partition that exists, null for none; and the time.
SELECT s.last, s.newest, p.opened,
       (SELECT max(x.p) FROM partitions x WHERE x.p >= w.first / $3::int8 AND x.p < (w.first + $4::int8) / $3::int8), micros()
FROM unnest($1::int8[], $2::text[]) WITH ORDINALITY AS w (first, sequence, place)
CROSS JOIN LATERAL (
    SELECT pg_sequence_last_value(w.sequence::regclass) AS last,
           coalesce(pg_sequence_last_value(w.sequence::regclass), w.first) / $3::int8 AS newest
) AS s
LEFT JOIN partitions p ON p.p = s.newest
ORDER BY w.place

-- name: partitions_owner
-- says whether this login may act as the owner of the tables, and names the owner.
SELECT pg_has_role(t.relowner, 'MEMBER'), quote_ident(pg_get_userbyid(t.relowner))
FROM pg_class t WHERE t.oid = to_regclass('entries')
