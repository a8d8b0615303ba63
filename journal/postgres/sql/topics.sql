-- name: topics_grant
-- binds a worker's login to topics (S8). $1 login, $2 topics. Returns a row for each that is new.
INSERT INTO worker_topics (login, topic) SELECT $1::text, t FROM unnest($2::text[]) AS t ON CONFLICT DO NOTHING RETURNING 1

-- name: topics_revoke
-- takes topics from a worker's login, all of them without topics (S8). $1 login, $2 topics. Returns a row for each.
DELETE FROM worker_topics WHERE login = $1::text AND (topic = ANY ($2::text[]) OR cardinality($2::text[]) = 0) RETURNING 1

-- name: role_member
-- looks up whether a login is a member of a group role by itself (S8). $1 role, $2 login. Returns a row if it is.
SELECT 1 FROM pg_auth_members m WHERE m.roleid = (SELECT oid FROM pg_roles WHERE rolname = $1::text)
AND m.member = (SELECT oid FROM pg_roles WHERE rolname = $2::text)

-- name: topics_list
-- lists the topics of workers' logins (S8).
SELECT login, topic FROM worker_topics ORDER BY login, topic

-- name: topics_own
-- lists the topics of this login (S8).
SELECT unnest(quipu_topics())
