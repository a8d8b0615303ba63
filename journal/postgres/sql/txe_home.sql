-- txe_home: makes the tables of the space visible until the transaction ends, and plans for them as everywhere. $1 search path.
SELECT set_config('search_path', $1::text, true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true)
