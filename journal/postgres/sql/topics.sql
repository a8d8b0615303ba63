-- name: topics_grant
-- binds a worker's login to topics (S8). $1 login, $2 topics.
INSERT INTO worker_topics (login, topic) SELECT $1::text, t FROM unnest($2::text[]) AS t ON CONFLICT DO NOTHING

-- name: topics_revoke
-- takes topics from a worker's login, all of them without topics (S8). $1 login, $2 topics.
DELETE FROM worker_topics WHERE login = $1::text AND (topic = ANY ($2::text[]) OR cardinality($2::text[]) = 0)

-- name: topics_list
-- lists the topics of workers' logins (S8).
SELECT login, topic FROM worker_topics ORDER BY login, topic
