-- A login for each part of the space (docs/security.md). The Postgres of docker-compose.yml runs this once, when its
-- volume is new. None of them has a right yet: the service "space" grants the roles.
\getenv owner QUIPU_OWNER_PASSWORD
\getenv engine QUIPU_ENGINE_PASSWORD
\getenv worker QUIPU_WORKER_PASSWORD
\getenv client QUIPU_CLIENT_PASSWORD
\getenv operator QUIPU_OPERATOR_PASSWORD
\getenv retention QUIPU_RETENTION_PASSWORD
\getenv verifier QUIPU_VERIFIER_PASSWORD

-- It makes the schema and the roles of the space, and is no superuser.
CREATE ROLE owner LOGIN CREATEROLE PASSWORD :'owner';
SELECT format('GRANT CREATE ON DATABASE %I TO owner', current_database()) \gexec

CREATE ROLE engine LOGIN PASSWORD :'engine';
CREATE ROLE worker LOGIN PASSWORD :'worker';
CREATE ROLE client LOGIN PASSWORD :'client';
CREATE ROLE operator LOGIN PASSWORD :'operator';
CREATE ROLE retention LOGIN PASSWORD :'retention';
CREATE ROLE verifier LOGIN PASSWORD :'verifier';

-- Partitions are made ahead and dropped by the owner of the tables (docs/retention.md).
GRANT owner TO retention;
