-- txe_home_session: makes the tables of the space visible while statements are prepared. $1 search path.
SELECT set_config('search_path', $1::text, false)
