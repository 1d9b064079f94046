-- # Subqueries that filter and project, thresholds around grouped subqueries, public lists after IN.
WITH base AS (SELECT * FROM sales WHERE quantity > 3) SELECT country FROM base GROUP BY country HAVING count(*) > 5000
--> [country 4] where "quantity" > 3 f0 > 5000 ~500; count(*) delta 100 in 0..100
SELECT w FROM (SELECT ward AS w, age AS years FROM visits v0 WHERE v0.disease = 'flu') v WHERE years > 40 GROUP BY w HAVING count(*) > 100 ORDER BY w
--> [ward 3] where ("age" > 40 AND "disease" = 'flu') f0 > 100 ~10; count(*) delta 1
SELECT country FROM (SELECT * FROM sales) t GROUP BY country HAVING count(*) > 5000
--> [country 4] f0 > 5000 ~500; count(*) delta 100 in 0..100
SELECT country FROM (SELECT country FROM sales WHERE quantity > 3) t GROUP BY country HAVING count(*) > 5000
--> [country 4] where "quantity" > 3 f0 > 5000 ~500; count(*) delta 100 in 0..100
SELECT country FROM (SELECT country, CASE WHEN quantity > 5 THEN 1 ELSE 0 END AS big FROM sales) t GROUP BY country HAVING sum(big) > 3000
--> [country 4] f0 > 3000 ~300; sum(CASE WHEN t.quantity > 5 THEN 1 ELSE 0 END) delta 100 in 0..100
SELECT "source"."country" FROM (SELECT "public"."sales"."country" AS "country", "public"."sales"."amount" AS "amount", "public"."sales"."quantity" AS "quantity" FROM "public"."sales" WHERE "public"."sales"."quantity" > 3) AS "source" GROUP BY "source"."country" HAVING COUNT(*) > 5000
--> [country 4] where "quantity" > 3 f0 > 5000 ~500; count(*) delta 100 in 0..100
select "rows"."country" as "country", "rows"."month" as "month" from (select "_"."country", "_"."month" from "public"."sales" "_" where "_"."month" >= timestamp '2011-01-01 00:00:00' and "_"."month" < timestamp '2011-06-01 00:00:00') "rows" group by "country", "month" having count(1) > 700
--> [country 4, month 5] f0 > 700 ~70; count(*) delta 100 in 0..100
SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE n > 3000
--> [ward 3] f0 > 3000 ~300; count(*) delta 1
WITH t AS (SELECT ward, count(*) AS n, avg(age) AS a FROM visits GROUP BY ward) SELECT ward FROM t WHERE n > 3000 AND a > 45 ORDER BY ward
--> [ward 3] (f0 > 3000 ~300 and f1 > 0 ~225); count(*) delta 1; avg(age) - 45 1x-45 delta 65
SELECT "source"."country" AS "country", "source"."count" AS "count" FROM (SELECT "public"."sales"."country" AS "country", COUNT(*) AS "count" FROM "public"."sales" GROUP BY "public"."sales"."country" ORDER BY "public"."sales"."country" ASC) AS "source" WHERE "source"."count" > 8000 LIMIT 1048575
--> KH101 COUNT(*)
SELECT "source"."country" AS "country" FROM (SELECT "public"."sales"."country" AS "country", COUNT(*) AS "count" FROM "public"."sales" GROUP BY "public"."sales"."country") AS "source" WHERE "source"."count" > 8000 LIMIT 1048575
--> [country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100
SELECT "t0"."country" AS "country" FROM (SELECT "sales"."country" AS "country", COUNT(1) AS "x_measure__0" FROM "public"."sales" "sales" GROUP BY 1) "t0" WHERE ("t0"."x_measure__0" > 8000)
--> [country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100
select "_"."country" from (select "rows"."country" as "country", count(1) as "a0" from "public"."sales" "rows" group by "country") "_" where "_"."a0" > 8000 limit 4096
--> [country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100
SELECT country FROM (SELECT country, max(amount) AS m, count(*) AS n FROM sales GROUP BY country) t WHERE n > 8000 AND m > 10
--> [country 4] (f0 > 8000 ~800 and f1 > 0 ~0); count(*) delta 100 in 0..100; count(*) FILTER (WHERE "amount" > 10) delta 100 in 0..100
SELECT country FROM sales WHERE country IN (SELECT name FROM regions WHERE region = 'West') GROUP BY country HAVING count(*) > 8000
--> [country 2] f0 > 8000 ~800; count(*) delta 100 in 0..100
SELECT ward FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 3000) GROUP BY ward HAVING avg(age) > 45 AND count(age) > 10
--> KH107 ward
SELECT country FROM sales GROUP BY country HAVING count(*) > (SELECT 8000)
--> KH208 8000)
SELECT ward, count(*) > 5000 AS busy FROM visits GROUP BY ward
--> [ward 3] true show f0 > 5000 ~500; count(*) delta 1
SELECT ward, CASE WHEN count(*) > 5000 THEN 'busy' ELSE 'quiet' END AS label FROM visits GROUP BY ward ORDER BY ward
--> [ward 3] true show f0 > 5000 ~500; count(*) delta 1
WITH a AS (SELECT * FROM sales WHERE quantity > 3), b AS (SELECT country AS c, quantity FROM a WHERE gift) SELECT c FROM b WHERE quantity < 9 OR gift GROUP BY c HAVING count(*) > 50
--> KH103 a
WITH a AS (SELECT * FROM sales WHERE quantity > 3), b AS (SELECT country AS c, quantity q FROM a WHERE gift) SELECT c FROM b WHERE q < 9 OR q > 20 GROUP BY c HAVING count(*) > 50
--> [country 4] where ("gift" = true AND "quantity" > 3 AND ("quantity" < 9 OR "quantity" > 20)) f0 > 50 ~5; count(*) delta 100 in 0..100
WITH a AS (SELECT * FROM sales WHERE quantity > 3), agg AS (SELECT country, count(*) AS n FROM a GROUP BY 1), final AS (SELECT country FROM agg WHERE n > 8000) SELECT * FROM final
--> [country 4] where "quantity" > 3 f0 > 8000 ~800; count(*) delta 100 in 0..100
SELECT t.ward, r.region FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t JOIN regions r ON r.name = t.ward WHERE t.n > 3000 AND r.region = 'West'
--> [ward 3] f0 > 3000 ~300; count(*) delta 1
SELECT * FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE n > 3000
--> KH101 count(*)
SELECT ward FROM (SELECT disease AS ward, ward AS w FROM visits) v GROUP BY ward HAVING count(*) > 100
--> KH202 ward
SELECT w AS age FROM (SELECT ward AS w, age AS years FROM visits) v GROUP BY age HAVING count(*) > 100
--> [ward 3] f0 > 100 ~10; count(*) delta 1
SELECT w AS age FROM (SELECT ward AS w, age AS years FROM visits) v GROUP BY w HAVING avg(years) > 3 AND count(years) > 10 ORDER BY age
--> [ward 3] (f0 > 0 ~15 and f1 > 10 ~1); avg(age) - 3 1x-3 delta 107; count(age) delta 1
SELECT v.w FROM (SELECT ward AS w FROM visits) v GROUP BY v.w HAVING count(*) > 100 ORDER BY v.w DESC LIMIT 3
--> [ward 3] f0 > 100 ~10; count(*) delta 1
SELECT upper(w) FROM (SELECT ward AS w FROM visits) v GROUP BY w HAVING count(*) > 100
--> [ward 3] f0 > 100 ~10; count(*) delta 1
SELECT ward FROM (SELECT ward FROM visits LIMIT 10) v GROUP BY ward HAVING count(*) > 100
--> KH103 visits
SELECT ward FROM (SELECT DISTINCT ward FROM visits) v GROUP BY ward HAVING count(*) > 100
--> KH103 visits)
SELECT ward FROM (SELECT ward FROM visits UNION ALL SELECT ward FROM visits) v GROUP BY ward HAVING count(*) > 100
--> KH103 visits
SELECT ward FROM (SELECT ward, generate_series(1, 3) g FROM visits) v GROUP BY ward HAVING count(*) > 100
--> KH103 visits)
SELECT ward FROM (SELECT ward, random() g FROM visits) v GROUP BY ward HAVING count(*) > 100
--> KH103 visits)
SELECT ward FROM (SELECT ward FROM visits) v WHERE age > 3 GROUP BY ward HAVING count(*) > 100
--> KH103 visits)
SELECT ward FROM (SELECT ward, row_number() OVER () r FROM visits) v WHERE r < 10 GROUP BY ward HAVING count(*) > 100
--> KH103 visits)
SELECT ward FROM (SELECT v FROM visits v) v GROUP BY ward HAVING count(*) > 100
--> KH103 visits
SELECT t.ward FROM regions r LEFT JOIN (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t ON r.name = t.ward WHERE n > 3000
--> KH101 count(*)
SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward LIMIT 2) t WHERE n > 3000
--> KH101 count(*)
SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY n DESC) t WHERE n > 3000
--> KH101 count(*)
SELECT t FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE n > 3000
--> KH101 count(*)
SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE n > 3000 OR ward = 'A'
--> KH207 n
SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE n BETWEEN 3000 AND 5000 AND ward <> 'B'
--> [ward 3] (f0 > 2999 ~300 and f0 <= 5000 ~500); count(*) delta 1
SELECT ward FROM (SELECT ward, count(*) AS n, sum(cost) / count(cost) AS m FROM visits GROUP BY ward) t WHERE n > 3000 AND m > 10 ORDER BY m
--> KH101 count(*)
SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE n > (SELECT 3)
--> KH101 count(*)
SELECT ward FROM (SELECT count(*) AS n, ward FROM visits GROUP BY 2 ORDER BY 2) t WHERE n > 3000
--> [ward 3] f0 > 3000 ~300; count(*) delta 1
SELECT ward FROM visits WHERE ward NOT IN (SELECT ward FROM visits WHERE age > 3 GROUP BY ward HAVING count(*) > 3000) AND age < 50 GROUP BY ward HAVING count(*) > 45
--> KH107 ward
SELECT country FROM sales WHERE country NOT IN (SELECT name FROM regions r WHERE r.region IN ('West', 'North')) GROUP BY country HAVING count(*) > 8000
--> [country 1] f0 > 8000 ~800; count(*) delta 100 in 0..100
SELECT country FROM sales WHERE country IN (SELECT name FROM regions WHERE region = 'Nowhere') GROUP BY country HAVING count(*) > 8000
--> KH107 name
SELECT country FROM sales s WHERE country IN (SELECT name FROM regions WHERE region = s.country) GROUP BY country HAVING count(*) > 8000
--> KH107 name
SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE nope > 3000 AND n > 10
--> [ward 3] f0 > 10 ~1; count(*) delta 1
SELECT ward FROM (SELECT *, date_trunc('day', arrived) AS d FROM visits) v GROUP BY ward, d HAVING count(*) > 100
--> [ward 3, day 10] f0 > 100 ~10; count(*) delta 1
SELECT d FROM (SELECT *, date_trunc('day', arrived) AS d FROM visits) v GROUP BY d HAVING count(*) > 100
--> [day 10] f0 > 100 ~10; count(*) delta 1
SELECT ward FROM (SELECT * FROM visits WHERE ward IN (SELECT name FROM regions)) v GROUP BY ward HAVING count(*) > 100 AND avg(nope) > 3
--> KH103 visits
SELECT ward FROM (SELECT * FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) a) t WHERE n > 3000
--> KH101 count(*)
WITH sales AS (SELECT * FROM sales WHERE gift) SELECT country FROM sales GROUP BY country HAVING count(*) > 10
--> KH106 sales
SELECT country FROM sales s WHERE country IN (SELECT r.name FROM public.regions r WHERE r.region = 'West' OR r.name LIKE 'N%') AND gift GROUP BY country HAVING count(*) > 8000
--> [country 3] where "gift" = true f0 > 8000 ~800; count(*) delta 100 in 0..100
WITH t AS (SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING avg(age) > 45 AND count(age) > 10) SELECT upper(t.ward) FROM t WHERE t.n >= 3000 AND t.n < 9000 ORDER BY t.ward LIMIT 5
--> [ward 3] (f0 > 0 ~225 and f1 > 10 ~1 and f2 > 2999 ~300 and f2 <= 8999 ~900); avg(age) - 45 1x-45 delta 65; count(age) delta 1; count(*) delta 1
SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING count(*) > 300) t
--> [ward 3] f0 > 300 ~30; count(*) delta 1
SELECT count(*) FROM (SELECT ward, day, count(*) AS n FROM visits GROUP BY ward, day) t WHERE n > 300
--> [ward 3, day 10] f0 > 300 ~30; count(*) delta 1
SELECT w FROM (SELECT v.ward AS w, v.age AS p FROM (SELECT * FROM visits WHERE age > 40) v) x GROUP BY w HAVING count(*) > 100
--> [ward 3] where "age" > 40 f0 > 100 ~10; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > (SELECT region FROM regions)
--> KH107 region
SELECT c.name FROM regions c WHERE NOT EXISTS (SELECT 1 FROM sales s WHERE s.country = c.name GROUP BY s.country HAVING count(*) > 8000)
--> [country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100
SELECT v.n FROM (VALUES ('France')) AS v(n) WHERE EXISTS (SELECT FROM sales WHERE gift AND upper(v.n) = country HAVING count(*) > 8000)
--> [country 4] where "gift" = true f0 > 8000 ~800; count(*) delta 100 in 0..100
SELECT c.name, q.month FROM regions c, LATERAL (SELECT s.month FROM sales s WHERE s.country = c.name GROUP BY 1 HAVING count(*) > 8000) q
--> [month 13, country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100
SELECT c.name FROM regions c WHERE c.name IN (SELECT country FROM sales s WHERE s.country = c.name GROUP BY country HAVING count(*) > 8000 OR sum(amount) > 8000)
--> [country 4] (f0 > 8000 ~800 or f1 > 800000 ~80000); count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000
SELECT c.name FROM regions c WHERE EXISTS (SELECT 1 FROM sales WHERE sales.country = c.name HAVING count(*) < 8000)
--> KH201 c.name
SELECT c.name FROM regions c WHERE EXISTS (SELECT 1 FROM sales WHERE sales.country = c.name OR gift GROUP BY country HAVING count(*) > 8000)
--> KH201 c.name
SELECT c.name FROM regions c WHERE EXISTS (SELECT 1 FROM sales WHERE sales.country = c.name GROUP BY country HAVING count(*) > length(c.name))
--> KH201 c.name
SELECT c.name FROM regions c WHERE EXISTS (SELECT 1 FROM sales s WHERE s.customer_id = c.name GROUP BY country HAVING count(*) > 8000)
--> KH202 GROUP
SELECT c.name FROM regions c WHERE (SELECT count(*) FROM sales s WHERE s.country = c.name) > 8000
--> KH101 count(*)
SELECT ward FROM (SELECT ward, 1 AS one FROM visits) e GROUP BY ward HAVING sum(one) > 20
--> [ward 3] f0 > 20 ~2; sum(1) delta 1
SELECT ward FROM (SELECT ward, 1 AS one FROM visits) e GROUP BY ward HAVING count(one) > 20 ORDER BY ward
--> [ward 3] f0 > 20 ~2; count(*) delta 1
SELECT one FROM (SELECT ward, 1 AS one FROM visits) e GROUP BY one HAVING count(*) > 20
--> KH103 visits)
SELECT ward FROM (SELECT ward, 'x' AS one FROM visits) e WHERE one = 'x' GROUP BY ward HAVING count(*) > 20
--> KH103 visits)
SELECT ward FROM (SELECT ward, true AS one FROM visits) e WHERE one GROUP BY ward HAVING count(*) > 20
--> [ward 3] f0 > 20 ~2; count(*) delta 1
SELECT ward FROM (SELECT ward, 5 AS five FROM visits) e WHERE five > 4 GROUP BY ward HAVING count(*) > 20
--> [ward 3] f0 > 20 ~2; count(*) delta 1
SELECT ward, one FROM (SELECT ward, 1 AS one FROM visits) e GROUP BY ward, one HAVING count(*) > 20
--> KH103 visits)
SELECT ward FROM (SELECT ward, trunc(cost) AS k FROM visits) e WHERE k >= 5 GROUP BY ward HAVING count(*) > 20
--> [ward 3] where "trunc(cost(18,6), 1000000)" >= 5 f0 > 20 ~2; count(*) delta 1
SELECT ward FROM (SELECT ward, nullif(age % 7, 0) AS k FROM (SELECT ward, greatest(age, 18) AS age FROM visits) a) e GROUP BY ward HAVING count(*) FILTER (WHERE k >= 5) > 20 ORDER BY ward
--> [ward 3] f0 > 20 ~2; count(*) FILTER (WHERE (nullif((greatest(e.age, 18)) % 7, 0)) >= 5) delta 1
WITH v AS (SELECT ward, extract(year FROM age(timestamp '2026-06-01', arrived)) AS years FROM visits) SELECT ward FROM v WHERE years >= 5 GROUP BY ward HAVING count(*) > 20
--> [ward 3] where "trunc((67234406400000000 - (((part(year arrived) * 33177600000000) + (part(month arrived) * 2764800000000)) + (arrived - (start(month arrived) * 86400000000)))), 33177600000000)" >= 5 f0 > 20 ~2; count(*) delta 1
SELECT ward FROM (SELECT ward, least(age, 65) AS k FROM visits) e GROUP BY ward HAVING sum(abs(k)) > 2000
--> [ward 3] f0 > 2000 ~200; sum(abs((least(e.age, 65)))) delta 65
WITH v AS (SELECT width_bucket(age, 0, 100, 10) AS b FROM visits) SELECT b FROM v GROUP BY b HAVING count(*) > 10 ORDER BY b DESC
--> [width_bucket(age, 0, 100, 10) 13] f0 > 10 ~1; count(*) delta 1
SELECT ward FROM (SELECT ward, unnest(ARRAY[1, 2]) AS k FROM visits) e GROUP BY ward HAVING count(*) > 20
--> KH103 visits)
SELECT ward FROM (SELECT ward, sqrt(age) AS k FROM visits) e WHERE k > 3 GROUP BY ward HAVING count(*) > 20
--> KH205 k
-- # Subqueries that join tables, or stand in a join.
SELECT region FROM (SELECT quantity, region FROM sales s LEFT JOIN regions r ON r.name = s.country WHERE quantity > 3 OR s.gift) v WHERE v.quantity < 9 GROUP BY v.region HAVING avg(quantity) > 5 AND count(*) > 500
--> [region 3] where ("quantity" < 9 AND ("gift" = true OR "quantity" > 3)) (f0 > 0 ~225 and f1 > 500 ~50); avg(quantity) - 5 1x-5 delta 500 in -500..300; count(*) delta 100 in 0..100
WITH d AS (SELECT * FROM regions JOIN sales ON name = country), e AS (SELECT region AS r, month FROM d WHERE gift) SELECT r, month FROM e GROUP BY r, month HAVING count(*) > 300
--> [region 3, month 13] where "gift" = true f0 > 300 ~30; count(*) delta 100 in 0..100
SELECT region FROM (SELECT * FROM sales WHERE gift) s JOIN (SELECT name, region FROM regions WHERE region <> 'West') r ON r.name = s.country GROUP BY region HAVING count(*) > 300
--> [region 2] where "gift" = true f0 > 300 ~30; count(*) delta 100 in 0..100
SELECT region FROM (SELECT s.*, r.* FROM sales s JOIN regions r ON s.country = r.name) v JOIN regions q ON q.name = v.country GROUP BY v.region HAVING count(*) > 300
--> KH103 sales
SELECT region FROM (SELECT r.region, s.country AS region FROM sales s JOIN regions r ON s.country = r.name) v GROUP BY region HAVING count(*) > 300
--> KH103 sales
SELECT region FROM (SELECT DISTINCT r.region, s.customer_id FROM sales s JOIN regions r ON s.country = r.name) v GROUP BY region HAVING count(*) > 300
--> KH103 sales
SELECT country FROM (SELECT s.country FROM sales s JOIN regions r ON s.gift) v GROUP BY country HAVING count(*) > 300
--> KH107 sales
SELECT country FROM (SELECT country, count(*) AS n, generate_series(1, count(*)::int) AS g FROM sales GROUP BY country) q WHERE n > 500
--> KH101 count(*)
SELECT country FROM (SELECT country, count(*) IN (700) OR count(*) BETWEEN 50 AND 90 AS b, count(*) AS n FROM sales GROUP BY country) q WHERE b = (n > 80)
--> [country 4] ((((f0 > 699 ~70 and f0 <= 700 ~70) or (f0 > 49 ~5 and f0 <= 90 ~9)) and f0 > 80 ~8) or ((f0 > 700 ~70 or f0 <= 699 ~70) and (f0 <= 49 ~5 or f0 > 90 ~9) and f0 <= 80 ~8)); count(*) delta 100 in 0..100
