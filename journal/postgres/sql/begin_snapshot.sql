-- begin_snapshot: opens a transaction that reads one snapshot and cannot write.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
