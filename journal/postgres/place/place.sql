-- Reads the identity of the server and what the row of the space says (S13). {schema} is the space's schema. It comes
-- first on every connection, also where our schema is not on the search path.
SELECT {schema}.server_system(), {schema}.server_timeline(), s.system, s.timeline, s.id, s.epoch, s.beat,
       coalesce(s.halted, ''), s.promote, s.chain_seq
FROM {schema}.space s
