-- # Scorecards: predicates in the select list and ORDER BY, and what stands around them.

-- # Predicates in the select list: columns of truths

SELECT country, sum(amount) > 20000 AS big FROM sales GROUP BY country
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, count(DISTINCT customer_id) >= 20 AND avg(amount) < 15 AND count(amount) >= 100 AS odd FROM sales GROUP BY country
--> [country 4] true show (f0 > 19 ~2 and f1 <= -1 ~13500 and f2 > 99 ~10); count(DISTINCT customer_id) delta 1 in 0..1; avg(amount) - 15 1x-1500 delta 250000 in -250000..145500; count(amount) delta 100 in 0..100

SELECT country, sum(amount) > 20000 AS big, sum(amount) > 5000 AS mid, count(*) > 100 AS busy FROM sales GROUP BY country
--> [country 4] true show f0 > 2000000 ~200000 show f0 > 500000 ~50000 show f1 > 100 ~10; sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT country, (sum(amount) > 20000)::int FROM sales GROUP BY country
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, CAST(sum(amount) > 20000 AS integer) AS flag FROM sales GROUP BY 1
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, coalesce(sum(amount) > 20000, false) FROM sales GROUP BY country
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, (sum(amount) > 20000) IS TRUE, sum(amount) > 20000 IS NOT TRUE, NOT sum(amount) > 20000 FROM sales GROUP BY country
--> KH206 sum(amount)

SELECT country, NOT (count(*) > 100) FROM sales GROUP BY country
--> [country 4] true show f0 <= 100 ~10; count(*) delta 100 in 0..100

SELECT country, count(*) FILTER (WHERE quantity > 5) > 50 AS bulk FROM sales GROUP BY country
--> [country 4] true show f0 > 50 ~5; count(*) FILTER (WHERE quantity > 5) delta 100 in 0..100

SELECT country, count(*) BETWEEN 100 AND 200 FROM sales GROUP BY country
--> [country 4] true show (f0 > 99 ~10 and f0 <= 200 ~20); count(*) delta 100 in 0..100

SELECT country, count(*) NOT BETWEEN 100 AND 200 FROM sales GROUP BY country
--> [country 4] true show (f0 <= 99 ~10 or f0 > 200 ~20); count(*) delta 100 in 0..100

SELECT country, 100 < count(*) FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, avg(amount) > 15 FROM sales GROUP BY country
--> [country 4] true show f0 > 0 ~7500; avg(amount) - 15 1x-1500 delta 250000 in -250000..145500

SELECT country, avg(amount) < 15 FROM sales GROUP BY country
--> [country 4] true show f0 <= -1 ~7500; avg(amount) - 15 1x-1500 delta 250000 in -250000..145500

SELECT country, count(*) > 100 OR sum(amount) > 20000 OR count(DISTINCT customer_id) > 50 FROM sales GROUP BY country
--> [country 4] true show (f0 > 100 ~10 or f1 > 2000000 ~200000 or f2 > 50 ~5); count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000; count(DISTINCT customer_id) delta 1 in 0..1

SELECT country, sum(amount) - sum(quantity) > 100 FROM sales GROUP BY country
--> KH206 sum(amount)

SELECT country, count(*) FILTER (WHERE gift)::float / nullif(count(*), 0) > 0.2 AS gifts FROM sales GROUP BY country
--> [country 4] true show f0 > 0 ~5; count(*) FILTER (WHERE gift) / count(*) - 0.2 {+5 if "gift" = true -1} delta 400 in -100..400

SELECT country, count(*) > 100 AS busy FROM sales WHERE quantity > 3 GROUP BY country
--> [country 4] where "quantity" > 3 true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, count(*) > 100 AS busy FROM sales WHERE country IN ('France', 'Norway') GROUP BY country
--> [country 2] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, count(*) > 100 AS busy FROM sales GROUP BY country HAVING sum(amount) > 5000
--> [country 4] f0 > 500000 ~50000 show f1 > 100 ~10; sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT country, month, count(*) > 100 AS busy FROM sales GROUP BY country, month ORDER BY country, month
--> [country 4, month 13] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT DISTINCT count(*) > 100 FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT DISTINCT ON (count(*) > 100) count(*) > 100 AS busy, country FROM sales GROUP BY country ORDER BY count(*) > 100, country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT count(*) > 1000 AS many, sum(amount) > 20000 AS much FROM sales
--> [] true show f0 > 1000 ~100 show f1 > 2000000 ~200000; count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000

SELECT count(*) > 1000 FROM sales WHERE country = 'France'
--> [] where "country" = 'France' true show f0 > 1000 ~100; count(*) delta 100 in 0..100

SELECT r.region, sum(s.amount) > 20000 AS big FROM sales s JOIN regions r ON r.name = s.country GROUP BY r.region
--> [region 3] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country AS c, sum(amount) > 20000 AS big FROM sales GROUP BY c
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT "country", SUM("amount") > 20000 AS "big one" FROM public."sales" GROUP BY "country"
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT EXTRACT(year FROM invoice_date) AS y, count(*) > 400 FROM sales GROUP BY 1
--> [EXTRACT(YEAR FROM CAST(month AS TIMESTAMP)) 2] true show f0 > 400 ~40; count(*) delta 100 in 0..100

-- # What stands around a predicate

SELECT country, CASE WHEN sum(amount) > 20000 THEN 'high' WHEN sum(amount) > 5000 THEN 'mid' ELSE 'low' END AS band FROM sales GROUP BY country
--> [country 4] true show f0 > 2000000 ~200000 show f0 > 500000 ~50000; sum(amount) delta 150000 in -100000..150000

SELECT country, CASE sum(amount) > 20000 WHEN true THEN 'yes' ELSE 'no' END FROM sales GROUP BY country
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, CASE WHEN country = 'France' THEN 'home' WHEN count(*) > 100 THEN 'busy' ELSE 'calm' END FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, CASE WHEN count(*) > 100 AND country <> 'France' THEN 1 ELSE 0 END FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, (count(*) > 100)::int + (sum(amount) > 20000)::int AS score FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10 show f1 > 2000000 ~200000; count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000

SELECT country, concat(country, ': ', CASE WHEN count(*) > 100 THEN 'busy' ELSE 'calm' END) FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, upper(CASE WHEN count(*) > 100 THEN 'busy' ELSE country END) FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) > 100 DESC, country LIMIT 3
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY CASE WHEN count(*) > 100 THEN 0 ELSE 1 END
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, CASE WHEN count(*) > 100 THEN CASE WHEN sum(amount) > 20000 THEN 'a' ELSE 'b' END END FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10 show f1 > 2000000 ~200000; count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000

SELECT big, count(*) FROM (SELECT country, sum(amount) > 20000 AS big FROM sales GROUP BY country) q GROUP BY big
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country FROM (SELECT country, sum(amount) > 20000 AS big FROM sales GROUP BY country) q WHERE big
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country FROM (SELECT country, sum(amount) > 20000 AS big FROM sales GROUP BY country) q WHERE NOT big ORDER BY 1
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

WITH cards AS (SELECT country, month, count(*) > 100 AS busy FROM sales GROUP BY country, month) SELECT country, bool_and(busy), count(*) FILTER (WHERE busy) FROM cards GROUP BY country
--> [country 4, month 13] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT q.*, rank() OVER (ORDER BY q.big DESC) FROM (SELECT country, sum(amount) > 20000 AS big FROM sales GROUP BY country) q
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, max(CASE WHEN month = '2011-01-01' THEN busy::int END) AS jan FROM (SELECT country, month, count(*) > 100 AS busy FROM sales GROUP BY country, month) q GROUP BY country
--> [country 4, month 13] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT r.name, q.big FROM regions r LEFT JOIN (SELECT country, sum(amount) > 20000 AS big FROM sales GROUP BY country) q ON q.country = r.name
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, count(*) > 100 FROM sales GROUP BY country UNION ALL SELECT country, count(*) > 200 FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100 & [country 4] true show f0 > 200 ~20; count(*) delta 100 in 0..100

SELECT country, count(*) > 100 FROM sales GROUP BY country UNION SELECT 'all', count(*) > 200 FROM sales
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100 & [] true show f0 > 200 ~20; count(*) delta 100 in 0..100

SELECT country, count(*) > 100 AS big FROM sales GROUP BY country INTERSECT SELECT country, count(*) > 200 FROM sales GROUP BY country
--> KH106 SELECT

(SELECT country, count(*) > 100, sum(amount) > 5 FROM sales WHERE gift GROUP BY 1) EXCEPT ALL (SELECT country, count(*) > 200, sum(amount) > 9 FROM sales WHERE gift GROUP BY 1)
--> KH106 SELECT

SELECT country, count(*) > 100 FROM sales GROUP BY country EXCEPT SELECT country, count(*) > 200 FROM sales WHERE gift GROUP BY country
--> KH106 SELECT

SELECT country, count(*) > 100 FROM sales GROUP BY country EXCEPT SELECT name, true FROM regions
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, month, lag(count(*) > 100) OVER (PARTITION BY country ORDER BY month) FROM sales GROUP BY country, month
--> KH101 lag(count(*)

SELECT country, count(*) > 100 AS busy, sum((count(*) > 100)::int) OVER () FROM sales GROUP BY country HAVING sum(amount) > 5
--> KH101 sum((count(*)

SELECT month, lag(count(*) > 100) OVER (PARTITION BY country ORDER BY month) FROM sales GROUP BY country, month
--> KH101 lag(count(*)

SELECT EXISTS (SELECT 1 FROM (SELECT country, count(*) > 100 AS busy FROM sales GROUP BY country) q WHERE busy)
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

-- # Bands

SELECT country, width_bucket(sum(amount), ARRAY[5000, 10000, 20000]) FROM sales GROUP BY country
--> [country 4] true show f0 > 499999 ~50000 show f0 > 999999 ~100000 show f0 > 1999999 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, width_bucket(sum(amount), ARRAY[5000, 10000, 20000])::text AS band FROM sales GROUP BY country ORDER BY band
--> [country 4] true show f0 > 499999 ~50000 show f0 > 999999 ~100000 show f0 > 1999999 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, width_bucket(count(*), 0, 1000, 4) FROM sales GROUP BY country
--> [country 4] true show true show f0 > 249 ~25 show f0 > 499 ~50 show f0 > 749 ~75 show f0 > 999 ~100; count(*) delta 100 in 0..100

SELECT country, CASE width_bucket(sum(amount), ARRAY[5000, 20000]) WHEN 0 THEN 'low' WHEN 1 THEN 'mid' ELSE 'high' END FROM sales GROUP BY country
--> [country 4] true show f0 > 499999 ~50000 show f0 > 1999999 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country, width_bucket(sum(amount), ARRAY[20000, 5000]) FROM sales GROUP BY country
--> KH101 sum(amount),

SELECT country, width_bucket(sum(amount), (SELECT ARRAY[1, 2])) FROM sales GROUP BY country
--> KH107 1,

-- # As tools write a metric with a condition

SELECT "country" AS "country", CASE WHEN SUM("amount") > 20000 THEN 1 ELSE 0 END AS "big" FROM "sales" GROUP BY "country" ORDER BY "big" DESC LIMIT 1000
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT "public"."sales"."country" AS "country", CASE WHEN SUM("public"."sales"."amount") > 20000 THEN 'yes' ELSE 'no' END AS "expression" FROM "public"."sales" GROUP BY "public"."sales"."country" ORDER BY "public"."sales"."country" ASC
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country AS metric, (count(*) > 100)::int AS value FROM sales GROUP BY country ORDER BY 1
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT DATE_TRUNC('month', invoice_date) AS __timestamp, country AS country, (COUNT(*) > 100)::int AS "busy" FROM public.sales GROUP BY DATE_TRUNC('month', invoice_date), country ORDER BY "busy" DESC LIMIT 10000
--> [month 13, country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT (SUM("sales"."amount") > 20000) AS "TEMP(Calculation)", "sales"."country" AS "country" FROM "public"."sales" "sales" GROUP BY 2
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

select "_"."country", case when sum("_"."amount") > 20000 then 1 else 0 end as "a0" from (select "country", "amount" from "public"."sales") "_" group by "_"."country" limit 1000001
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT sales.country AS "sales.country", CASE WHEN COALESCE(SUM(sales.amount), 0) > 20000 THEN 'Yes' ELSE 'No' END AS "sales.is_big" FROM public.sales AS sales GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY
--> [country 4] true show f0 > 2000000 ~200000; coalesce(sum(amount), 0) delta 150000 in -100000..150000

SELECT country, max(CASE WHEN quantity > 5 THEN 1 ELSE 0 END) = 1 AS any_bulk FROM sales GROUP BY country
--> KH204 quantity

SELECT country, sum(CASE WHEN quantity > 5 THEN 1 ELSE 0 END) > 50 AS bulk FROM sales GROUP BY country
--> [country 4] true show f0 > 50 ~5; sum(CASE WHEN quantity > 5 THEN 1 ELSE 0 END) delta 100 in 0..100

SELECT country, sum(amount) / nullif(count(*), 0) > 15 AND count(*) >= 100 AS dear FROM sales GROUP BY country
--> [country 4] true show (f0 > 0 ~13500 and f1 > 99 ~10); sum(amount) / count(*) - 15 {+1 amount -1500} delta 5150000 in -5150000..4850000; count(*) delta 100 in 0..100

-- # Per unit

SELECT country, count(*) > 30 AS many_large FROM (SELECT country, customer_id, month, sum(amount) AS spent FROM sales GROUP BY country, customer_id, month) u WHERE spent > 100 GROUP BY country
--> [country 4] where "total total|1 'amount'^1 [true]|sensitivity=150000|unit_range=-100000..150000 steps 0.01 where units|1 'amount'^0 [true]|sensitivity=1|unit_range=.." > 100 true show f0 > 30 ~3; count(*) delta 1

-- # Sizes stay unseen

SELECT country, sum(amount) FROM sales GROUP BY country
--> KH101 sum(amount)

SELECT country, sum(amount) > 20000, sum(amount) FROM sales GROUP BY country
--> KH101 sum(amount)

SELECT country, rank() OVER (ORDER BY sum(amount)) FROM sales GROUP BY country
--> KH101 rank()

SELECT country, CASE WHEN count(*) > 100 THEN count(*) ELSE 0 END FROM sales GROUP BY country
--> KH101 count(*)

SELECT country, count(*) > quantity FROM sales GROUP BY country, quantity
--> KH202 quantity

SELECT country, quantity > 3 FROM sales GROUP BY country
--> KH101 quantity

SELECT country, greatest(count(*), 100) > 100 FROM sales GROUP BY country
--> KH204 greatest(count(*),

SELECT country, sum(amount) > (SELECT 5) FROM sales GROUP BY country
--> KH107 5)

SELECT country, string_agg(month::text, ',') > 'a' FROM sales GROUP BY country
--> KH204 month::text,

SELECT country, count(*) % 2 = 0 FROM sales GROUP BY country
--> KH204 count(*)

SELECT country, abs(sum(amount)) > 20000 FROM sales GROUP BY country
--> KH204 abs(sum(amount))

SELECT country, count(*) = 100 AS exactly FROM sales GROUP BY country
--> [country 4] true show (f0 > 99 ~10 and f0 <= 100 ~10); count(*) delta 100 in 0..100

SELECT country, array_agg(quantity) = ARRAY[1] FROM sales GROUP BY country
--> KH204 array_agg(quantity)

SELECT customer_id, count(*) > 100 FROM sales GROUP BY customer_id
--> KH202 customer_id

SELECT country, random() < 0.5, count(*) > 100 FROM sales GROUP BY country
--> KH101 random()

SELECT country, pg_sleep(1), count(*) > 100 FROM sales GROUP BY country
--> KH101 pg_sleep(1),

SELECT *, count(*) > 100 FROM sales GROUP BY country
--> KH101 *,

SELECT country, every(quantity > 3) FROM sales GROUP BY country
--> KH206 quantity

SELECT country, bool_or(quantity > 3) AND count(*) > 100 FROM sales GROUP BY country
--> [country 4] true show (f0 > 0 ~0 and f1 > 100 ~10); count(*) FILTER (WHERE "quantity" > 3) delta 100 in 0..100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY sum(amount) DESC LIMIT 3
--> KH304 sum(amount)
