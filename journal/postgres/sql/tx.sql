-- name: begin
-- opens a transaction with the isolation that the locks assume (J3).
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE

-- name: begin_snapshot
-- opens a transaction that reads one snapshot and cannot write.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: commit
-- commits. The caller checks the answer's tag: a failed transaction answers ROLLBACK (J6).
COMMIT

-- name: rollback
-- ends a transaction without a trace.
ROLLBACK

-- name: scan
-- lets this transaction scan whole tables. No statement that handles a message does.
SET LOCAL enable_seqscan = on

-- name: bitmap
-- lets this transaction use the index on tags, which PostgreSQL reads by a bitmap alone.
SET LOCAL enable_bitmapscan = on

-- name: clock
-- reads the database's clock in microseconds (J5).
SELECT micros()

-- name: tx_enter
-- puts the tables of the space first on the search path of a caller's transaction, before temporary ones. $1 search
-- path. Returns the old one.
SELECT current_setting('search_path'), set_config('search_path', $1::text, true)

-- name: tx_space
-- reads the id and the epoch of the space in the database of a caller's transaction, and whether the space was
-- accepted there (S13).
SELECT id, epoch, halted IS NULL AND timeline = server_timeline() AND system = server_system() FROM space WHERE single
