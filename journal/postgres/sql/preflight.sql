-- preflight: the settings on which the promise rests (4.4).
SELECT current_setting('server_version_num')::int8, current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('synchronous_commit'), pg_is_in_recovery(), current_setting('data_checksums'),
       current_setting('server_version')
