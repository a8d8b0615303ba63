-- name: txe_home
-- makes the tables of the space visible until the transaction ends, and plans for them as everywhere. $1 search path.
SELECT set_config('search_path', $1::text, true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true)

-- name: txe_home_session
-- makes the tables of the space visible while statements are prepared. $1 search path.
SELECT set_config('search_path', $1::text, false)

-- name: txe_save
-- the savepoint of a Tx effect (E3): what its body does is undone to it.
SAVEPOINT quipu_effect

-- name: txe_check
-- checks what the body of a Tx effect deferred, as long as it is the body's failure.
SET CONSTRAINTS ALL IMMEDIATE

-- name: txe_keep
-- ends the body of a Tx effect; an error where its transaction is not the one that it began in.
RELEASE SAVEPOINT quipu_effect

-- name: txe_undo
-- undoes what was done since the savepoint of a Tx effect, settings as well.
ROLLBACK TO SAVEPOINT quipu_effect

-- name: txe_reset
-- takes back every setting of a Tx effect, for its connection and for what follows in its transaction.
RESET ALL

-- name: txe_role
-- takes back a change of role by a Tx effect.
RESET ROLE

-- name: txe_user
-- takes back a change of user by a Tx effect, and with it of the role.
RESET SESSION AUTHORIZATION

-- name: txe_cursors
-- closes the cursors that a Tx effect left on its connection.
CLOSE ALL

-- name: txe_temp
-- drops the temporary tables that a Tx effect left on its connection.
DISCARD TEMP

-- name: txe_unlock
-- ends the advisory locks that a Tx effect left on its connection.
SELECT pg_advisory_unlock_all()
