-- # Statements that the shadow answers as they stand, and settings of Keyhole.
SELECT 1
--> select
SELECT r.name, upper(region) FROM regions r WHERE name <> 'France' ORDER BY 1 LIMIT 3
--> select
SELECT 'sales' AS sales, "name" FROM public.regions
--> select
SELECT sales FROM regions
--> select
SELECT * FROM other.sales
--> select
/* a /* nested */ comment; */ SELECT ';' -- sales
--> select
VALUES (1, 'a'), (2, $$b;$$)
--> select
TABLE regions
--> select
COPY (SELECT * FROM regions) TO STDOUT (FORMAT csv, HEADER)
--> copy
COPY (SELECT country FROM sales GROUP BY country HAVING count(*) > 50 -- ) TO
) TO STDOUT
--> copying SELECT country FROM sales GROUP BY country HAVING count(*) > 50
WITH t AS (SELECT * FROM regions) SELECT * FROM t
--> select
(SELECT 1) UNION ALL (SELECT 2)
--> select
SELECT * FROM information_schema.tables WHERE table_name = 'sales'
--> select
SELECT 'sales'::regclass
--> select
SELECT set_config('search_path', '', false)
--> select
SELECT set_config('keyhole.fnr', '0.01', false)
--> select
SELECT pg_advisory_unlock_all()
--> select
SHOW keyhole.fnr
--> show
SHOW ALL
--> show
SET search_path TO public
--> set
SET SESSION datestyle = 'ISO, MDY'
--> set
SET TIME ZONE 'UTC'
--> set
SET NAMES 'UTF8'
--> set
SET SCHEMA 'public'
--> set
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
--> set
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
--> set
SET standard_conforming_strings = on
--> set
RESET ALL
--> reset
RESET keyhole.tolerance
--> reset
BEGIN
--> transaction
START TRANSACTION READ ONLY
--> transaction
COMMIT
--> transaction
ROLLBACK TO SAVEPOINT a
--> transaction
SAVEPOINT a
--> transaction
RELEASE a
--> transaction
DECLARE c CURSOR WITH HOLD FOR SELECT * FROM regions
--> declare
FETCH 10 FROM c
--> fetch
MOVE 1 IN c
--> move
CLOSE ALL
--> close
PREPARE p (text) AS SELECT * FROM regions WHERE name = $1
--> prepare
EXECUTE p('France')
--> executing p with 1: ('France')
EXECUTE p
--> executing p with 0
EXECUTE "P q" (1, greatest(2, 3), ARRAY[4, 5])
--> executing P q with 3:  (1, greatest(2, 3), ARRAY[4, 5])
EXPLAIN (FORMAT JSON) EXECUTE p(5)
--> explain (format json) executing p with 1: (5)
EXECUTE p(1), (2)
--> execute
PREPARE p AS SELECT country FROM sales GROUP BY country HAVING count(*) > 5
--> preparing SELECT country FROM sales GROUP BY country HAVING count(*) > 5
PREPARE p (int) AS WITH q AS (SELECT country FROM sales GROUP BY country HAVING count(*) > $1) TABLE q;
--> preparing WITH q AS (SELECT country FROM sales GROUP BY country HAVING count(*) > $1) TABLE q
DEALLOCATE ALL
--> deallocate
DISCARD ALL
--> discard
UNLISTEN *
--> unlisten
EXPLAIN SELECT * FROM regions
--> explain
EXPLAIN SELECT country, month FROM sales GROUP BY ROLLUP (country, month) HAVING count(*) > 5
--> explaining text of 3
EXPLAIN (FORMAT JSON) SELECT country FROM sales GROUP BY country HAVING count(*) > 5 UNION ALL SELECT month::text FROM sales GROUP BY month HAVING count(*) > 5
--> explaining json of 2
EXPLAIN (FORMAT JSON, VERBOSE) SELECT * FROM regions
--> explain
SET keyhole.fnr = 0.01
--> keyhole.fnr = 0.01
SET LOCAL keyhole.fpr TO '0.2'
--> keyhole.fpr = 0.2 local
set session KEYHOLE.Tolerance = '10%, count=25'
--> keyhole.tolerance = 10%, count=25
SET keyhole.mechanism TO DEFAULT
--> keyhole.mechanism = default
SET keyhole.mechanism = tslm
--> keyhole.mechanism = tslm
SELECT * FROM keyhole.budget
--> asking
SELECT name FROM keyhole.settings s, regions
--> asking
SELECT * FROM busy_months LIMIT 5
--> asking
SELECT country FROM sales GROUP BY country HAVING count(*) > 1000
--> asking
EXPLAIN SELECT country FROM sales GROUP BY country HAVING count(*) > 1000
--> explaining text
EXPLAIN VERBOSE SELECT country FROM sales GROUP BY country HAVING count(*) > 40;
--> explaining verbose
EXPLAIN (VERBOSE) SELECT country FROM sales GROUP BY country HAVING count(*) > 40;
--> explaining verbose
EXPLAIN (VERBOSE off) SELECT country FROM sales GROUP BY country HAVING count(*) > 40;
--> explaining text
EXPLAIN (verbose true, FORMAT text) SELECT country FROM sales GROUP BY country HAVING count(*) > 40;
--> explaining verbose
EXPLAIN (VERBOSE, FORMAT JSON) SELECT country FROM sales GROUP BY country HAVING count(*) > 40;
--> explaining json
EXPLAIN (FORMAT JSON) SELECT * FROM busy_months
--> explaining json
EXPLAIN (ANALYZE off, FORMAT json) SELECT * FROM (SELECT ward FROM visits GROUP BY 1 HAVING count(*) > 5) t ORDER BY 1
--> explaining json
DECLARE c CURSOR FOR SELECT country FROM sales GROUP BY country HAVING count(*) > 5
--> asking
SELECT country FROM sales GROUP BY country HAVING count(*) > 5 INTERSECT SELECT country FROM sales WHERE gift GROUP BY country HAVING count(*) > 5
--> asking
