-- name: begin
-- opens a transaction of the isolation that the locks assume (J3).
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE

-- name: begin_snapshot
-- opens a transaction that reads one snapshot and cannot write.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: commit
-- the answer's tag is checked: a failed transaction answers ROLLBACK (J6).
COMMIT

-- name: rollback
-- ends a transaction without a trace.
ROLLBACK

-- name: scan
-- lets this transaction read tables whole, which no statement on the way of a message does.
SET LOCAL enable_seqscan = on

-- name: clock
-- the database's clock in microseconds (J5).
SELECT micros()

-- name: tx_enter
-- makes the tables of the space visible, and no temporary one before them, in a transaction that is not ours. $1
-- search path. Returns the one before.
SELECT current_setting('search_path'), set_config('search_path', $1::text, true)

-- name: tx_space
-- the id of the space in the database of a transaction that is not ours.
SELECT id FROM space WHERE single

-- name: tx_leave
-- gives a transaction that is not ours its search path back. $1 search path.
SELECT set_config('search_path', $1::text, true)
