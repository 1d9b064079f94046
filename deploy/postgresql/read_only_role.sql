-- The role that Keyhole reads a PostgreSQL source with: it can select from the listed tables, keep copies of their rows
-- in a schema of its own, and do nothing else.
-- Run as the owner of the tables:  psql -v password="'...'" -f read_only_role.sql hospital

CREATE ROLE keyhole_reader LOGIN PASSWORD :password NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT 9;
ALTER ROLE keyhole_reader SET default_transaction_read_only = on;
ALTER ROLE keyhole_reader SET statement_timeout = '60s';
ALTER ROLE keyhole_reader SET timezone = 'UTC';

REVOKE CREATE, TEMPORARY ON DATABASE :"DBNAME" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO keyhole_reader;
GRANT USAGE ON SCHEMA public TO keyhole_reader;

-- exactly the tables that keyhole.toml names, private and public ones
GRANT SELECT ON public.visits, public.diseases TO keyhole_reader;

-- source.scratch: where rows that count are kept for later questions (docs/policy.md). Nobody else may look inside.
-- Leave it out where no copies may lie in the database: then every question reads its table.
CREATE SCHEMA keyhole_scratch;
REVOKE ALL ON SCHEMA keyhole_scratch FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA keyhole_scratch TO keyhole_reader;
