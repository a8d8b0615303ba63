-- name: txe_home
-- makes the tables of the space visible until the transaction ends, and sets our plan settings. $1 search path.
SELECT set_config('search_path', $1::text, true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true)

-- name: txe_save
-- sets the savepoint of a Tx effect (E3), to which its body's writes can be undone.
SAVEPOINT quipu_effect

-- name: txe_check
-- checks constraints that the body deferred, so that a failure is still the body's.
SET CONSTRAINTS ALL IMMEDIATE

-- name: txe_keep
-- ends the body of a Tx effect. It fails if the transaction is not the one in which the body began.
RELEASE SAVEPOINT quipu_effect

-- name: txe_undo
-- undoes everything since the savepoint of a Tx effect, including settings.
ROLLBACK TO SAVEPOINT quipu_effect

-- name: txe_reset
-- resets every setting that a Tx effect changed.
RESET ALL

-- name: txe_role
-- resets a role that a Tx effect set.
RESET ROLE

-- name: txe_user
-- resets a user that a Tx effect set, and with it the role.
RESET SESSION AUTHORIZATION

-- name: txe_cursors
-- closes the cursors that a Tx effect left on its connection.
CLOSE ALL

-- name: txe_temp
-- drops the temporary tables that a Tx effect left on its connection.
DISCARD TEMP

-- name: txe_unlock
-- releases the advisory locks that a Tx effect left on its connection.
SELECT pg_advisory_unlock_all()
