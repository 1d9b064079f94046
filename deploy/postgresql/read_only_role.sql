-- The role that Keyhole reads a PostgreSQL source with: it can select from the listed tables, keep copies of their rows
-- in a schema of its own, and do nothing else. As a superuser, in the database with the tables:
--
--   psql -v password='...' -f read_only_role.sql hospital
--
-- Without one it takes two: first whoever has CREATEROLE makes the role, then the owner of the database and of the
-- tables grants (without a password, that part alone runs). Where tables have another owner, that one grants SELECT.
--
--   psql -v password='...' -v role_only= -f read_only_role.sql hospital
--   psql -f read_only_role.sql hospital

-- Nothing is done by halves: what stops it undoes it.
\set ON_ERROR_STOP on
BEGIN;

\if :{?password}
-- 20 connections for each process that serves (docs/operating.md, "Several processes"): with --workers 4, 80
CREATE ROLE keyhole_reader LOGIN PASSWORD :'password'
  NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT 20;
ALTER ROLE keyhole_reader SET default_transaction_read_only = on;
ALTER ROLE keyhole_reader SET statement_timeout = '60s';
ALTER ROLE keyhole_reader SET timezone = 'UTC';
\endif

\if :{?role_only}
\else
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
\endif

COMMIT;
