-- # Refusals: the KH code, and the text at the position it points to.
SELEC 1
--> KH102 SELEC 1
SELECT 'a
--> KH100 'a
SELECT country FROM sales GROUP GROUP
--> KH100
SELECT 1; SELECT 2
--> KH108 ; SELECT 2
CREATE TABLE t (a int)
--> KH102 CREATE
CREATE TEMP VIEW v AS SELECT * FROM sales
--> KH102 CREATE
ALTER ROLE demo SET keyhole.fnr = 0.1
--> KH102 ALTER
DO $$ BEGIN PERFORM 1; END $$
--> KH102 DO
COPY sales TO STDOUT
--> KH102 COPY
COPY sales (country) FROM STDIN
--> KH102 COPY
COPY (DELETE FROM regions) TO STDOUT
--> KH102 DELETE
COPY (SELECT 1) TO '/answer'
--> KH102 '/answer'
COPY (SELECT 1) TO PROGRAM 'cat'
--> KH102 PROGRAM
COPY (SELECT * FROM sales) TO STDOUT
--> KH103 sales
COPY (SELECT country, count(*) FROM sales GROUP BY country) TO STDOUT CSV
--> KH101 count
CALL f()
--> KH102 CALL
NOTIFY x
--> KH102 NOTIFY
INSERT INTO regions VALUES ('a', 'b')
--> KH102 INSERT
UPDATE sales SET amount = 1
--> KH102 UPDATE
DELETE FROM sales
--> KH102 DELETE
MERGE INTO sales USING regions ON true WHEN MATCHED THEN DELETE
--> KH102 MERGE
TRUNCATE sales
--> KH102 TRUNCATE
LOCK TABLE sales
--> KH102 LOCK
"select" 1
--> KH102 "select"
WITH gone AS (DELETE FROM regions RETURNING *) SELECT * FROM gone
--> KH102 DELETE
WITH gone AS MATERIALIZED (INSERT INTO regions VALUES ('a', 'b') RETURNING *) SELECT * FROM gone
--> KH102 INSERT
SELECT * INTO copy FROM regions
--> KH102 INTO
SELECT pg_read_file('/etc/passwd')
--> KH102 pg_read_file
SELECT pg_catalog."lo_import"('x')
--> KH102 "lo_import"
SELECT query_to_xml('SELECT * FROM sales', true, false, '')
--> KH102 query_to_xml
SELECT table_to_xml ('sales', true, false, '')
--> KH102 table_to_xml
SELECT * FROM dblink('', 'SELECT 1') AS t(a int)
--> KH102 dblink
SELECT pg_terminate_backend(1)
--> KH102 pg_terminate_backend
SELECT pg_advisory_lock(1)
--> KH102 pg_advisory_lock
SELECT set_config('role', 'postgres', false)
--> KH102 set_config
SELECT set_config('ro' || 'le', 'postgres', false)
--> KH102 set_config
SELECT set_config(E'\x72ole', 'postgres', false)
--> KH102 set_config
SET ROLE postgres
--> KH102 ROLE
SET SESSION AUTHORIZATION postgres
--> KH102 SESSION
SET SESSION SESSION AUTHORIZATION bob
--> KH102 SESSION AUTHORIZATION
SET session_replication_role = replica
--> KH102 session_replication_role
SET standard_conforming_strings = off
--> KH102 standard_conforming_strings
SET session_replication_role = replica
--> KH102 session_replication_role
SET keyhole.fnr = 0.7
--> KH402 keyhole.fnr
SET keyhole.fnr = -0.1
--> KH402 keyhole.fnr
SET keyhole.tolerance = 'lots'
--> KH402 keyhole.tolerance
SET keyhole.mechanism = 'svt'
--> KH402 keyhole
SET keyhole.speed = 1
--> KH403 keyhole.speed
RESET keyhole.speed
--> KH403
PREPARE TRANSACTION 'x'
--> KH102 PREPARE
COMMIT PREPARED 'x'
--> KH102 COMMIT
PREPARE p AS DELETE FROM regions
--> KH102 DELETE
PREPARE p AS SELECT amount FROM sales
--> KH103 sales
EXPLAIN ANALYZE EXECUTE p(5)
--> KH102 ANALYZE
EXPLAIN EXECUTE p(lo_import('x'))
--> KH102 lo_import
EXECUTE p(query_to_xml('TABLE sales', true, true, ''))
--> KH102 query_to_xml
DECLARE c CURSOR FOR SELECT * FROM sales
--> KH103 sales
EXPLAIN ANALYZE SELECT country FROM sales GROUP BY country HAVING count(*) > 5
--> KH102 ANALYZE
EXPLAIN (ANALYZE true, BUFFERS) SELECT 1
--> KH102 ANALYZE
EXPLAIN SELECT * FROM sales
--> KH103 sales
EXPLAIN INSERT INTO regions VALUES ('a', 'b')
--> KH102 INSERT
EXPLAIN (FORMAT XML) SELECT country FROM sales GROUP BY country HAVING count(*) > 5
--> KH106 XML
SELECT * FROM sales
--> KH103 sales
TABLE sales
--> KH103 sales
SELECT 1 WHERE EXISTS (TABLE public.sales)
--> KH103 public.sales
SELECT amount FROM sales LIMIT 1
--> KH103 sales
SELECT * FROM regions WHERE name IN (SELECT country FROM sales)
--> KH103 sales
SELECT country, count(*) FROM sales GROUP BY country
--> KH101 count(*)
SELECT count(*) FROM sales
--> KH101 count(*)
SELECT country, rank() OVER (ORDER BY quantity) FROM sales GROUP BY country HAVING count(*) > 5
--> KH101 quantity
SELECT country, amount FROM sales GROUP BY country HAVING count(*) > 5
--> KH101 amount
SELECT * FROM sales GROUP BY country HAVING count(*) > 5
--> KH101 *
SELECT country, random() FROM sales GROUP BY country HAVING count(*) > 5
--> KH101 random
SELECT country FROM sales WHERE gift GROUP BY country
--> KH104 country
SELECT country FROM sales WHERE month = '2011-01-01' GROUP BY country
--> KH104 country
SELECT count(*) FROM (SELECT DISTINCT country FROM sales) AS q
--> KH103 sales
SELECT DISTINCT country FROM sales WHERE gift
--> KH103 sales
SELECT DISTINCT ON (country) country FROM sales
--> KH103 sales
SELECT name FROM regions WHERE name IN (SELECT country FROM sales)
--> KH103 sales
SELECT month, 1 FROM sales HAVING count(*) > 5
--> KH105 count(*)
SELECT * FROM sales HAVING count(*) > 5
--> KH105 count(*)
SELECT count(*) > 5, count(*) FROM sales
--> KH101 count(*)
SELECT true FROM sales HAVING country = 'France' AND count(*) > 5
--> KH207 country
SELECT country FROM sales GROUP BY () HAVING count(*) > 5
--> KH105
SELECT country FROM ONLY sales GROUP BY country HAVING count(*) > 5
--> KH106
SELECT country FROM sales TABLESAMPLE system (5) GROUP BY country HAVING count(*) > 5
--> KH106 sales
SELECT country FROM sales GROUP BY country HAVING count(*) > 5 FOR UPDATE
--> KH106 sales
SELECT c FROM sales AS s(c) GROUP BY c HAVING count(*) > 5
--> KH106 sales
WITH sales AS (SELECT 1) SELECT * FROM sales
--> KH106 sales
SELECT country FROM sales JOIN regions ON country = region GROUP BY country HAVING count(*) > 5
--> KH107 country = region
SELECT name FROM regions, sales GROUP BY name HAVING count(*) > 5
--> KH107 regions
SELECT country FROM sales JOIN regions ON country <> name GROUP BY country HAVING count(*) > 5
--> KH107 regions
SELECT country FROM sales CROSS JOIN regions GROUP BY country HAVING count(*) > 5
--> KH107 regions
SELECT name FROM sales RIGHT JOIN regions ON country = name GROUP BY name HAVING count(*) > 5
--> KH107 regions
SELECT name FROM sales FULL JOIN regions ON country = name GROUP BY name HAVING count(*) > 5
--> KH107 regions
SELECT name FROM regions LEFT JOIN sales ON country = name GROUP BY name HAVING count(*) > 5
--> KH107 sales
SELECT country FROM sales NATURAL JOIN regions GROUP BY country HAVING count(*) > 5
--> KH107 regions
SELECT country FROM sales LEFT JOIN regions ON country = name AND region = 'West' GROUP BY country HAVING count(*) > 5
--> KH107 regions
SELECT country FROM sales LEFT JOIN regions ON country = name OR region = 'West' GROUP BY country HAVING count(*) > 5
--> KH107 regions
SELECT country FROM sales JOIN regions ON customer_id = name GROUP BY country HAVING count(*) > 5
--> KH107 customer_id
SELECT country FROM sales JOIN regions USING (country) GROUP BY country HAVING count(*) > 5
--> KH201 country)
SELECT country FROM sales JOIN regions ON country = regions.nom GROUP BY country HAVING count(*) > 5
--> KH201 country = regions.nom
SELECT country FROM sales JOIN regions ON country = name WHERE region > 'A' GROUP BY country HAVING count(*) > 5
--> KH205 'A'
SELECT region FROM sales s JOIN regions a ON country = a.name JOIN regions b ON country = b.name GROUP BY region HAVING count(*) > 5
--> KH201 region
SELECT sales.country FROM sales JOIN regions sales ON country = name GROUP BY country HAVING count(*) > 5
--> KH107 regions
SELECT country FROM sales JOIN visits ON country = ward GROUP BY country HAVING count(*) > 5
--> KH107 visits
SELECT a.country FROM sales a JOIN sales b ON a.country = b.country GROUP BY a.country HAVING count(*) > 5
--> KH107 sales b
SELECT country FROM sales JOIN busy_months b ON sales.country = b.country GROUP BY country HAVING count(*) > 5
--> KH107 busy_months
SELECT country FROM sales JOIN keyhole.errors ON country = code GROUP BY country HAVING count(*) > 5
--> KH107 keyhole.errors
SELECT country FROM sales JOIN pg_class ON country = relname GROUP BY country HAVING count(*) > 5
--> KH107 pg_class
SELECT country FROM sales JOIN (SELECT * FROM regions LIMIT 3) r ON country = name GROUP BY country HAVING count(*) > 5
--> KH107
SELECT country FROM (sales JOIN regions ON country = name) GROUP BY country HAVING count(*) > 5
--> KH103
SELECT country FROM sales, LATERAL (SELECT 1) q GROUP BY country HAVING count(*) > 5
--> KH107
SELECT country FROM sales JOIN regions AS r (a, b) ON country = a GROUP BY country HAVING count(*) > 5
--> KH107 regions
SELECT country FROM sales JOIN regions TABLESAMPLE SYSTEM (10) ON country = name GROUP BY country HAVING count(*) > 5
--> KH107 regions
WITH regions AS (SELECT 1 AS name) SELECT country FROM sales JOIN regions ON country = name GROUP BY country HAVING count(*) > 5
--> KH107 regions
WITH sales AS (SELECT name AS country FROM regions) SELECT country FROM sales JOIN regions ON country = name GROUP BY country HAVING count(*) > 5
--> KH106 sales
SELECT r.* FROM sales JOIN regions r ON country = name GROUP BY country HAVING count(*) > 5
--> KH101 r
SELECT region FROM sales JOIN regions r ON country = name GROUP BY country HAVING count(*) > 5
--> KH101 region
SELECT country FROM sales WHERE country IN (SELECT name FROM regions LIMIT 1) GROUP BY country HAVING count(*) > 5
--> KH107 name
SELECT country FROM sales GROUP BY country HAVING count(*) > (SELECT 5)
--> KH208 5
SELECT country FROM sales WHERE nothing = 1 GROUP BY country HAVING count(*) > 5
--> KH201 nothing
SELECT name FROM regions r WHERE EXISTS (SELECT 1 FROM sales WHERE country > r.name GROUP BY country HAVING count(*) > 5)
--> KH201 r.name
SELECT customer_id FROM sales GROUP BY customer_id HAVING count(*) > 5
--> KH202 customer_id
SELECT md5(country) FROM sales GROUP BY md5(country) HAVING count(*) > 5
--> KH202 md5(country)
SELECT left(stock_code, 3) FROM sales WHERE left(stock_code, 2) IN ('S1', 'S2') GROUP BY left(stock_code, 3) HAVING count(*) > 5
--> KH202 left(stock_code, 3)
SELECT country FROM sales GROUP BY 2 HAVING count(*) > 5
--> KH215 2
SELECT country FROM sales GROUP BY country, 0 HAVING count(*) > 5
--> KH215 0
SELECT country FROM sales GROUP BY -1 HAVING count(*) > 5
--> KH215 1
SELECT country FROM sales GROUP BY 1.0 HAVING count(*) > 5
--> KH100 1.0
SELECT country FROM sales GROUP BY 2147483648 HAVING count(*) > 5
--> KH100 2147483648
SELECT country FROM sales GROUP BY 'country' HAVING count(*) > 5
--> KH100 'country'
SELECT country FROM sales GROUP BY country HAVING sum(weight) > 5
--> KH203 sum(weight)
SELECT ward FROM visits GROUP BY ward HAVING sum(height) > 5
--> KH203 sum(height)
SELECT ward FROM visits GROUP BY ward HAVING sum(disease) > 5
--> KH204 sum(disease)
SELECT country FROM capped_sales GROUP BY country HAVING count(attributes) > 5
--> KH204 attributes
SELECT country FROM sales GROUP BY country HAVING max(amount) < 5
--> KH206 max(amount)
SELECT country FROM sales GROUP BY country HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) > 5
--> KH206
SELECT country FROM sales GROUP BY country HAVING sum(DISTINCT amount) > 5
--> KH204
SELECT country FROM sales GROUP BY country HAVING sum(amount / quantity) > 5
--> KH203 sum(amount
SELECT country FROM sales GROUP BY country HAVING sum(quantity) / count(*) + 1 > 5
--> KH204
SELECT country FROM sales GROUP BY country HAVING count(*) FILTER (WHERE gift) <> count(*) FILTER (WHERE NOT gift)
--> KH304
SELECT country FROM sales GROUP BY country HAVING count(*) / 2 + 1 > 5
--> KH204
SELECT country FROM sales GROUP BY country HAVING stddev(amount) > avg(amount)
--> KH208 avg
SELECT country FROM sales GROUP BY country HAVING count(*) OVER () > 5
--> KH204
SELECT country FROM sales WHERE quantity::text = '5' GROUP BY country HAVING count(*) > 5
--> KH205 quantity
SELECT country FROM sales WHERE stock_code ~ '(a+)+' GROUP BY country HAVING count(*) > 5
--> KH205 stock_code
SELECT country FROM sales WHERE stock_code ILIKE 'café' GROUP BY country HAVING count(*) > 5
--> KH205 stock_code
SELECT country FROM sales WHERE stock_code SIMILAR TO 'a!%' ESCAPE '!' GROUP BY country HAVING count(*) > 5
--> KH205 stock_code
SELECT country FROM sales WHERE stock_code < 'M' GROUP BY country HAVING count(*) > 5
--> KH205
SELECT country FROM sales WHERE attributes = 'x' GROUP BY country HAVING count(*) > 5
--> KH205 attributes
SELECT country FROM sales WHERE quantity = random() GROUP BY country HAVING count(*) > 5
--> KH205 random
SELECT ward FROM visits GROUP BY ward HAVING avg(age) >= 65
--> KH206 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING NOT (avg(age) > 65)
--> KH206 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) < 65 AND count(*) > 5
--> KH206 sum(cost)
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) < 65 OR count(cost) > 5
--> KH206 sum(cost)
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) FILTER (WHERE insured) < 65 AND count(cost) > 5
--> KH206 sum(cost)
SELECT country FROM sales GROUP BY country HAVING country = 'France' OR count(*) > 5
--> KH207 country = 'France'
SELECT country FROM sales GROUP BY country HAVING count(*)
--> KH207 count(*)
SELECT country FROM sales GROUP BY country HAVING amount > 5
--> KH207 amount
SELECT country FROM sales GROUP BY country HAVING count(*) > quantity
--> KH208 quantity
SELECT country FROM sales GROUP BY country HAVING count(*) > current_date
--> KH208
SELECT country FROM sales GROUP BY country HAVING count(DISTINCT weight) > 5
--> KH209 count
SELECT country FROM sales GROUP BY country HAVING count(DISTINCT (customer_id, stock_code)) > 5
--> KH209 count
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT (age, cost)) > 5
--> KH209 count
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT (age, cost)) > 5
--> KH209 count
SELECT country FROM sales GROUP BY country HAVING count(DISTINCT attributes) > 5
--> KH204 count
SELECT country FROM sales WHERE amount > 1 / 0 GROUP BY country HAVING count(*) > 5
--> KH212 1 / 0
SELECT country FROM sales WHERE country = 5 GROUP BY country HAVING count(*) > 5
--> KH212 5
SELECT country FROM sales WHERE quantity = 'many' GROUP BY country HAVING count(*) > 5
--> KH212 'many'
SELECT country FROM sales WHERE invoice_date > 'tomorrow' GROUP BY country HAVING count(*) > 5
--> KH212 'tomorrow'
SELECT country FROM sales WHERE invoice_date - '2010-12-01' > interval '7 days' GROUP BY country HAVING count(*) > 5
--> KH205 invoice_date - '2010-12-01'
SELECT ward FROM visits GROUP BY ward HAVING avg(day - '2010-12-01') > 5
--> KH212 '2010-12-01'
SELECT country FROM sales WHERE stock_code LIKE 'a\' GROUP BY country HAVING count(*) > 5
--> KH212 'a\'
SELECT country FROM sales WHERE quantity = $1 GROUP BY country HAVING count(*) > 5
--> KH109 $1
SELECT country FROM sales WHERE amount > 1e999999999 GROUP BY country HAVING count(*) > 5
--> KH212 1e999999999
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 0
--> KH304 avg(age)
SELECT country, month FROM sales WHERE gift GROUP BY ROLLUP (country, month) HAVING count(*) > 5 ORDER BY count(*)
--> KH106
SELECT month FROM sales GROUP BY GROUPING SETS (month, ROLLUP (country)) HAVING count(*) > 5 ORDER BY sum(amount) DESC
--> KH106
EXECUTE "keyhole.refused"
--> KH404 "keyhole.refused"
DECLARE "keyhole.part" CURSOR FOR SELECT 1
--> KH404 "keyhole.part"
WITH q AS (SELECT country FROM sales) SELECT FROM q
--> KH103
SELECT FROM (SELECT country FROM sales) AS q
--> KH103
SELECT ward FROM visits WHERE @ age = 3 GROUP BY ward HAVING count(*) > 40
--> KH106 @ age
SELECT country FROM sales WHERE country LIKE 'F%' GROUP BY country HAVING sum(amount) > 0.1 * (SELECT sum(amount) FROM sales WHERE gift)
--> KH107 sum(amount)
SELECT s.country FROM sales s WHERE s.country LIKE 'F%' GROUP BY 1 HAVING sum(amount) / (SELECT sum(o.amount) FROM sales o) > 0.1 AND count(*) > 50
--> KH107 sum(o.amount)
SELECT true FROM sales HAVING count(*) > (SELECT count(*) FROM visits)
--> KH107 count(*)
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT avg(age) FROM visits)
--> KH206 avg(age)
