-- resolve_terminate: ends the backend whose commit has an unknown outcome, so that nothing waits for it (J4). $1 backend pid, $2 its application name.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1::int8 AND application_name = $2::text
