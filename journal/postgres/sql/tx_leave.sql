-- tx_leave: gives a transaction that is not ours its search path back. $1 search path.
SELECT set_config('search_path', $1::text, true)
