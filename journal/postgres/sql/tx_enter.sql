-- tx_enter: makes the tables of the space visible, and no temporary one before them, in a transaction that is not ours. $1 search path. Returns the one before.
SELECT current_setting('search_path'), set_config('search_path', $1::text, true)
