-- A copy of a table that changes all the time, put in the place of the copy before, together with a new data version: the
-- policy has `relation = "copies.visits"` and `refresh = "explicit"`, and nobody reads the table itself. As the owner of
-- both, on the machine and as the user of Keyhole, nightly or whenever the answers are to be newer:
--
--   psql -v live=public.visits -v copies=copies -v name=visits -v reader=keyhole_reader \
--     -v version='keyhole refresh visits --policy /var/lib/keyhole/keyhole.toml' -f new_version.sql hospital
--
-- The first time, before `keyhole check`, leave `version` out: it makes the schema and the first copy. For a calendar,
-- start it shortly before the tick and wait for that instead: -v version='sleep 600'.
--
-- Guarantee: while the version changes nobody reads either copy (ACCESS EXCLUSIVE), so that no question reads the new
-- rows under the old version's name or the old ones under the new name. Where the version cannot be changed, or anything
-- else fails, the copy before stays; rows under a version of their own are then asked for anew, which costs more and is
-- sound. A copy is all of the rows once more: it belongs into backups and grants as they do.

\set ON_ERROR_STOP on
\set next :name _next

CREATE SCHEMA IF NOT EXISTS :"copies";
DROP TABLE IF EXISTS :"copies".:"next";
-- beside whoever asks, however long it takes; types, NOT NULL, uniqueness and indexes as they are
CREATE TABLE :"copies".:"next" (LIKE :live INCLUDING CONSTRAINTS INCLUDING INDEXES);
INSERT INTO :"copies".:"next" SELECT * FROM :live;
GRANT USAGE ON SCHEMA :"copies" TO :"reader";
GRANT SELECT ON :"copies".:"next" TO :"reader";
ANALYZE :"copies".:"next";

\if :{?version}
BEGIN;
-- What is under way is waited for, and who comes meanwhile waits behind this: less long than a question may take, whose
-- asker would have paid for nothing. Where it is not had by then the copy before stays; run the script again.
SET LOCAL lock_timeout = '5s';
LOCK TABLE :"copies".:"name" IN ACCESS EXCLUSIVE MODE;
DROP TABLE :"copies".:"name";
ALTER TABLE :"copies".:"next" RENAME TO :"name";
\setenv KEYHOLE_VERSION :version
\set changed `sh -c "$KEYHOLE_VERSION" >&2 && echo yes || echo no`
\if :changed
COMMIT;
\else
ROLLBACK;
\warn 'the version was not changed: the copy before stays'
DO $$ BEGIN RAISE 'nothing was done'; END $$;
\endif
\else
ALTER TABLE :"copies".:"next" RENAME TO :"name";
\endif
