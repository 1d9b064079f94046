-- The role that Keyhole reads a PostgreSQL source with: it can select from the listed tables and do nothing else.
-- Run as the owner of the tables:  psql -v password="'...'" -f read_only_role.sql hospital

CREATE ROLE keyhole_reader LOGIN PASSWORD :password NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT 8;
ALTER ROLE keyhole_reader SET default_transaction_read_only = on;
ALTER ROLE keyhole_reader SET statement_timeout = '60s';
ALTER ROLE keyhole_reader SET timezone = 'UTC';

REVOKE CREATE, TEMPORARY ON DATABASE :"DBNAME" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME" TO keyhole_reader;
GRANT USAGE ON SCHEMA public TO keyhole_reader;

-- exactly the tables that keyhole.toml names, private and public ones
GRANT SELECT ON public.visits, public.diseases TO keyhole_reader;
