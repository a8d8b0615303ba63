-- flow_lock: one change of a flow's versions at a time. $1 name.
SELECT pg_advisory_xact_lock(hashtextextended('quipu flow ' || current_schema() || ' ' || $1::text, 0))
