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
--> KH206 sum(amount) else [country 4] true show f0 > 2000000 ~200000 show f0 <= 2000000 ~200000 show (f0 <= 2000000 ~200000 and f1 > 49 ~5); sum(amount) delta 150000 in -100000..150000; count(DISTINCT (customer_id, month)) FILTER (WHERE amount IS NOT NULL) delta 1

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
--> KH206 sum(amount) else [country 4] true show (f0 > 10000 ~1000 and f1 > 49 ~5 and f2 > 49 ~5); sum(amount) - sum(quantity) {+1 amount -100 quantity} delta 200000 in -200000..150000; count(DISTINCT (customer_id, month)) FILTER (WHERE amount IS NOT NULL) delta 1; count(DISTINCT (customer_id, month)) FILTER (WHERE quantity IS NOT NULL) delta 1

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
--> [country 4] f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country FROM (SELECT country, sum(amount) > 20000 AS big FROM sales GROUP BY country) q WHERE NOT big ORDER BY 1
--> KH206 NOT else [country 4] (f0 <= 2000000 ~200000 and f1 > 49 ~5); sum(amount) delta 150000 in -100000..150000; count(DISTINCT (customer_id, month)) FILTER (WHERE amount IS NOT NULL) delta 1

SELECT country, big, busy FROM (SELECT country, sum(amount) > 20000 AS big, count(*) > 100 AS busy FROM sales GROUP BY country) q WHERE big
--> [country 4] f0 > 2000000 ~200000 show f1 > 100 ~10; sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT country, busy FROM (SELECT country, sum(amount) > 20000 AS big, count(*) > 100 AS busy FROM sales GROUP BY country) q WHERE big AND NOT busy
--> [country 4] (f0 > 2000000 ~200000 and f1 <= 100 ~10); sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT * FROM (SELECT country, sum(amount) > 20000 AS big, count(*) > 100 AS busy FROM sales GROUP BY country) q WHERE big OR busy
--> [country 4] (f0 > 2000000 ~200000 or f1 > 100 ~10) show f0 > 2000000 ~200000 show f1 > 100 ~10; sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, sum(amount) > 20000 AS big, count(*) > 100 AS busy FROM sales GROUP BY country) q WHERE country <> 'Norway' AND (big IS TRUE OR busy)
--> [country 4] (f0 > 2000000 ~200000 or f1 > 100 ~10); sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, sum(amount) > 20000 AS big, count(*) > 100 AS busy FROM sales GROUP BY country) q WHERE big = busy
--> [country 4] true show f0 > 2000000 ~200000 show f1 > 100 ~10; sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, sum(amount) > 20000 AS big FROM sales GROUP BY country) q WHERE big OR country = 'France'
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
--> [country 4, month 13] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, count(*) > 100 AS busy, sum((count(*) > 100)::int) OVER () FROM sales GROUP BY country HAVING sum(amount) > 500
--> [country 4] f0 > 50000 ~5000 show f1 > 100 ~10; sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT month, lag(count(*) > 100) OVER (PARTITION BY country ORDER BY month) FROM sales GROUP BY country, month
--> [country 4, month 13] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT EXISTS (SELECT 1 FROM (SELECT country, count(*) > 100 AS busy FROM sales GROUP BY country) q WHERE busy)
--> [country 4] f0 > 100 ~10; count(*) delta 100 in 0..100

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
--> [country 4] true all rising ~1100000 signed priced; sum(amount) delta 150000 in -100000..150000

SELECT country, CASE WHEN count(*) > 100 THEN count(*) ELSE 0 END FROM sales GROUP BY country
--> KH101 count(*)

SELECT country, count(*) > quantity FROM sales GROUP BY country, quantity
--> KH208 quantity

SELECT country, quantity > 3 FROM sales GROUP BY country
--> KH101 quantity

SELECT country, greatest(count(*), 100) > 100 FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, sum(amount) > (SELECT 5) FROM sales GROUP BY country
--> KH107 5)

SELECT country, string_agg(month::text, ',') > 'a' FROM sales GROUP BY country
--> KH204 month::text,

SELECT country, count(*) % 2 = 0 FROM sales GROUP BY country
--> KH204 count(*)

SELECT country, abs(sum(amount)) > 20000 FROM sales GROUP BY country
--> [country 4] true show (f0 > 2000000 ~200000 or f0 <= -2000001 ~200000); sum(amount) delta 150000 in -100000..150000

SELECT country, sqrt(sum(amount)) > 20000 FROM sales GROUP BY country
--> KH204 sqrt(sum(amount))

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
--> KH206 quantity else [country 4] true show (f0 <= 0 ~0 and f1 > 49 ~5); count(*) FILTER (WHERE "quantity" <= 3) delta 100 in 0..100; count(DISTINCT (customer_id, month)) FILTER (WHERE quantity IS NOT NULL) delta 1

SELECT country, bool_or(quantity > 3) AND count(*) > 100 FROM sales GROUP BY country
--> [country 4] true show (f0 > 0 ~0 and f1 > 100 ~10); count(*) FILTER (WHERE "quantity" > 3) delta 100 in 0..100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY sum(amount) DESC LIMIT 3
--> [country 4] true first 3 falling ~1100000 signed priced; sum(amount) delta 150000 in -100000..150000

-- # Thresholds around a grouped subquery

SELECT country, n > 100 AS big FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, CASE WHEN n > 100 THEN 'high' WHEN n > 50 THEN 'mid' ELSE 'low' END AS band FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE n > 10
--> [country 4] f0 > 10 ~1 show f0 > 100 ~10 show f0 > 50 ~5; count(*) delta 100 in 0..100

WITH q AS (SELECT country, sum(amount) AS s, count(*) AS n FROM sales GROUP BY country) SELECT country, s > 20000 AS big, n > 100 AS busy FROM q ORDER BY big DESC, country
--> [country 4] true show f0 > 2000000 ~200000 show f1 > 100 ~10; sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT q.country, q.n > 100 FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY q.n > 100
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, width_bucket(n, ARRAY[50, 100]) AS band, s / n > 3 FROM (SELECT country, count(*) AS n, sum(amount) AS s FROM sales GROUP BY country HAVING count(*) > 10) q
--> [country 4] f0 > 10 ~1 show f0 > 49 ~5 show f0 > 99 ~10 show f1 > 0 ~1500; count(*) delta 100 in 0..100; sum(amount) / count(*) - 3 {+1 amount -300} delta 5030000 in -5030000..4970000

SELECT count(*) FILTER (WHERE n > 100) AS busy FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT sum(CASE WHEN n > 100 THEN 1 ELSE 0 END) > 2 FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT r.region, q.n > 100 FROM regions r JOIN (SELECT country, count(*) AS n FROM sales GROUP BY country) q ON q.country = r.name
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT r.region, q.n > 100 FROM regions r LEFT JOIN (SELECT country, count(*) AS n FROM sales GROUP BY country) q ON q.country = r.name
--> KH101 count(*)

SELECT n > 100 AS "n > 100", COUNT(*) AS count FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) AS virtual_table GROUP BY n > 100 ORDER BY count DESC LIMIT 1000
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, n > 5, lag(n > 5) OVER (ORDER BY country), sum((n > 100)::int) OVER () FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> [country 4] true show f0 > 5 ~0 show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, n > 5, EXISTS (SELECT 1 FROM regions WHERE name = country) FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> [country 4] true show f0 > 5 ~0; count(*) delta 100 in 0..100

SELECT country, (SELECT bool_or(n > 5) FROM (VALUES (1)) v(n)) FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> KH101 count(*)

SELECT country, n > 100, n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> KH101 count(*)

SELECT country, n > 100 FROM (SELECT DISTINCT country, count(*) AS n FROM sales GROUP BY country) q
--> KH101 count(*)

SELECT country, n > 100 FROM (SELECT country, count(*) AS n FROM sales GROUP BY country ORDER BY n DESC LIMIT 3) q
--> KH101 count(*)

SELECT country, n % 2 = 0 FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> KH204 n

SELECT country, n > 100 FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE country <> 'France'
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, band FROM (SELECT country, width_bucket(count(*), ARRAY[50, 100]) AS band FROM sales GROUP BY country) q WHERE band >= 1
--> [country 4] true show f0 > 49 ~5 show f0 > 99 ~10; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, CASE WHEN count(*) > 100 THEN 'busy' END AS state FROM sales GROUP BY country) q WHERE state = 'busy'
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, count(*) > 100 AND country IS NOT NULL FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

-- # Functions of truths

SELECT country, GREATEST((count(*) > 100)::int, (sum(amount) > 20000)::int) AS level FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10 show f1 > 2000000 ~200000; count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000

SELECT country, format('%s is %s', country, CASE WHEN count(*) > 100 THEN 'busy' ELSE 'calm' END) FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, CASE WHEN count(*) > 100 THEN repeat('*', 3) ELSE '' END AS stars FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, nullif(round((count(*) > 100)::int * 100.0, 1), 0), substring(CASE WHEN count(*) > 100 THEN 'busy' ELSE 'calm' END, 1, 1) FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, ARRAY[count(*) > 100, sum(amount) > 20000], (count(*) > 100, country) IS NOT NULL, ROW(country, count(*) > 100) FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10 show f1 > 2000000 ~200000; count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000

SELECT jsonb_build_object('country', country, 'busy', count(*) > 100) FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT greatest(count(*), 5) FROM sales GROUP BY country
--> KH101 count(*),

SELECT json_build_object('n', count(*)) FROM sales GROUP BY country
--> KH101 count(*))

SELECT country, CASE WHEN count(*) > 100 THEN round(sum(amount)) END FROM sales GROUP BY country
--> KH101 sum(amount))

SELECT country, md5(country), count(*) > 100 FROM sales GROUP BY country
--> KH101 md5(country),

-- # As Superset writes it

SELECT country AS country, SUM(amount) > 20000 AS "SUM(amount) > 20000" FROM public.sales GROUP BY country ORDER BY "SUM(amount) > 20000" DESC LIMIT 10000
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country AS country, month AS month, CASE WHEN SUM(amount) > 20000 THEN 2 WHEN SUM(amount) > 5000 THEN 1 ELSE 0 END AS status FROM public.sales WHERE invoice_date >= TO_TIMESTAMP('2011-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND invoice_date < TO_TIMESTAMP('2011-07-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY country, month ORDER BY status DESC LIMIT 50000
--> [country 4, month 6] where ("invoice_date" < timestamp '2011-07-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') true show f0 > 2000000 ~200000 show f0 > 500000 ~50000; sum(amount) delta 150000 in -100000..150000

SELECT DATE_TRUNC('month', invoice_date) AS invoice_date, country AS country, CAST(COUNT(*) > 100 AS INT) AS "busy" FROM public.sales GROUP BY DATE_TRUNC('month', invoice_date), country ORDER BY "busy" DESC LIMIT 10000
--> [month 13, country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country AS country, sum(CASE WHEN quantity > 5 THEN 1 ELSE 0 END) > 50 AS "bulk" FROM public.sales GROUP BY country LIMIT 1000
--> [country 4] true show f0 > 50 ~5; sum(CASE WHEN quantity > 5 THEN 1 ELSE 0 END) delta 100 in 0..100

SELECT country AS country, COUNT(*) > 100 AS busy, AVG(amount) > 15 AS dear, COUNT(DISTINCT customer_id) > 20 AS many FROM public.sales GROUP BY country LIMIT 1000
--> [country 4] true show f0 > 100 ~10 show f1 > 0 ~7500 show f2 > 20 ~2; count(*) delta 100 in 0..100; avg(amount) - 15 1x-1500 delta 250000 in -250000..145500; count(DISTINCT customer_id) delta 1 in 0..1

SELECT CASE WHEN COUNT(*) > 5000 THEN 1 ELSE 0 END AS kpi FROM public.sales LIMIT 50000
--> [] true show f0 > 5000 ~500; count(*) delta 100 in 0..100

SELECT country AS country, COUNT(*) > 100 AS busy FROM (SELECT * FROM sales WHERE gift) AS virtual_table GROUP BY country ORDER BY busy DESC LIMIT 1000
--> [country 4] where "gift" = true true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country AS country, CASE WHEN SUM(amount) > 20000 THEN 'high' ELSE 'low' END AS band FROM (SELECT country, amount FROM sales) AS virtual_table GROUP BY country LIMIT 1000
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT country AS country, band AS band, COUNT(*) AS count FROM (SELECT country, CASE WHEN sum(amount) > 20000 THEN 'high' ELSE 'low' END AS band FROM sales GROUP BY country) AS virtual_table GROUP BY country, band ORDER BY count DESC LIMIT 1000
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT band AS band, MAX(big::int) AS "MAX(big)" FROM (SELECT country AS band, sum(amount) > 20000 AS big FROM sales GROUP BY country) AS virtual_table GROUP BY band ORDER BY "MAX(big)" DESC LIMIT 1000
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

-- # As Metabase writes it

SELECT "public"."sales"."country" AS "country", CASE WHEN SUM("public"."sales"."amount") > 20000 THEN 'high' WHEN SUM("public"."sales"."amount") > 5000 THEN 'mid' ELSE 'low' END AS "Status" FROM "public"."sales" GROUP BY "public"."sales"."country" ORDER BY "public"."sales"."country" ASC
--> [country 4] true show f0 > 2000000 ~200000 show f0 > 500000 ~50000; sum(amount) delta 150000 in -100000..150000

SELECT "source"."country" AS "country", CASE WHEN "source"."sum" > 20000 THEN 'high' ELSE 'low' END AS "Status" FROM (SELECT "public"."sales"."country" AS "country", SUM("public"."sales"."amount") AS "sum" FROM "public"."sales" GROUP BY "public"."sales"."country" ORDER BY "public"."sales"."country" ASC) AS "source" LIMIT 1048575
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT "source"."country" AS "country", "source"."count" > 100 AS "Busy" FROM (SELECT "public"."sales"."country" AS "country", COUNT(*) AS "count" FROM "public"."sales" GROUP BY "public"."sales"."country") AS "source" WHERE "source"."count" > 10 LIMIT 1048575
--> [country 4] f0 > 10 ~1 show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT "source"."Status" AS "Status", COUNT(*) AS "count" FROM (SELECT "public"."sales"."country" AS "country", CASE WHEN SUM("public"."sales"."amount") > 20000 THEN 'high' ELSE 'low' END AS "Status" FROM "public"."sales" GROUP BY "public"."sales"."country") AS "source" GROUP BY "source"."Status" ORDER BY "source"."Status" ASC
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT CAST(DATE_TRUNC('month', "public"."sales"."invoice_date") AS date) AS "invoice_date", CASE WHEN COUNT(*) > 100 THEN TRUE ELSE FALSE END AS "Busy" FROM "public"."sales" GROUP BY CAST(DATE_TRUNC('month', "public"."sales"."invoice_date") AS date) ORDER BY CAST(DATE_TRUNC('month', "public"."sales"."invoice_date") AS date) ASC
--> [month 13] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT "public"."sales"."country" AS "country", SUM(CASE WHEN "public"."sales"."quantity" > 5 THEN 1 ELSE 0.0 END) > 50 AS "bulk" FROM "public"."sales" GROUP BY "public"."sales"."country" ORDER BY "bulk" DESC, "public"."sales"."country" ASC
--> [country 4] true show f0 > 50 ~5; sum(CASE WHEN "public"."sales"."quantity" > 5 THEN 1 ELSE 0.0 END) delta 100 in 0..100

SELECT "public"."sales"."country" AS "country", CAST(SUM(CASE WHEN "public"."sales"."gift" = TRUE THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION) / NULLIF(CAST(COUNT(*) AS DOUBLE PRECISION), 0.0) > 0.25 AS "gifts" FROM "public"."sales" GROUP BY "public"."sales"."country" ORDER BY "public"."sales"."country" ASC
--> [country 4] true show f0 > 0 ~5; sum(CASE WHEN "public"."sales"."gift" = TRUE THEN 1 ELSE 0.0 END) / count(*) - 0.25 {+4 if "gift" = true -1} delta 300 in -100..300

-- # As Tableau writes it

SELECT "sales"."country" AS "country", (CASE WHEN (SUM("sales"."amount") > 20000) THEN 'high' ELSE 'low' END) AS "usr:Calculation_1368249927221915648:nk" FROM "public"."sales" "sales" GROUP BY 1
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT "sales"."country" AS "country", (SUM("sales"."amount") > 20000) AS "usr:Calculation_1368249927221915649:ok" FROM "public"."sales" "sales" GROUP BY 1
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

SELECT "sales"."country" AS "country", (CASE WHEN (SUM("sales"."amount") > 20000) THEN 'high' WHEN (SUM("sales"."amount") > 5000) THEN 'mid' WHEN NOT (COUNT(1) > 10) THEN 'none' ELSE CAST(NULL AS TEXT) END) AS "usr:Calculation_1:nk", (COUNT(DISTINCT "sales"."customer_id") >= 20) AS "usr:Calculation_2:nk" FROM "public"."sales" "sales" GROUP BY 1
--> [country 4] true show f0 > 2000000 ~200000 show f0 > 500000 ~50000 show f1 <= 10 ~1 show f2 > 19 ~2; sum(amount) delta 150000 in -100000..150000; count(*) delta 100 in 0..100; count(DISTINCT customer_id) delta 1 in 0..1

SELECT CAST(DATE_TRUNC( 'MONTH', CAST("sales"."invoice_date" AS DATE) ) AS DATE) AS "tmn:invoice_date:ok", (CASE WHEN (SUM(CAST("sales"."quantity" AS BIGINT)) > 400) THEN 1 ELSE 0 END) AS "usr:Calculation_3:ok" FROM "public"."sales" "sales" GROUP BY 1
--> [month 13] true show f0 > 400 ~40; sum(CAST("sales"."quantity" AS BIGINT)) delta 1000 in 0..1000

SELECT "sales"."country" AS "country", (CASE WHEN (SUM(1) > 100) THEN 1 ELSE 0 END) AS "usr:n:ok" FROM "public"."sales" "sales" GROUP BY 1 HAVING (SUM(1) > 10)
--> [country 4] f0 > 10 ~1 show f0 > 100 ~10; sum(1) delta 100 in 0..100

SELECT ((SUM(CAST("sales"."quantity" AS BIGINT)) > 400) AND (COUNT(1) > 50)) AS "TEMP(x)(1)(0)", "sales"."country" AS "country" FROM "public"."sales" "sales" GROUP BY 2
--> [country 4] true show (f0 > 400 ~40 and f1 > 50 ~5); sum(CAST("sales"."quantity" AS BIGINT)) delta 1000 in 0..1000; count(*) delta 100 in 0..100

-- # As Power BI writes it

select "_"."country", case when "_"."a0" > 20000 then 'high' else 'low' end as "a1" from ( select "rows"."country" as "country", sum("rows"."amount") as "a0" from ( select "country", "amount" from "public"."sales" "$Table" ) "rows" group by "country" ) "_" limit 1000001
--> [country 4] true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

select "_"."country" as "country", "_"."a0" as "a0" from ( select "rows"."country" as "country", sum("rows"."amount") > 20000 as "a0" from ( select "_"."country", "_"."amount" from "public"."sales" "_" where "_"."gift" ) "rows" group by "country" ) "_" where not "_"."a0" is null limit 1001
--> [country 4] where "gift" = true true show f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000

select "_"."country" as "c1", cast("_"."a0" > 100 as integer) as "a1" from ( select "country", count(1) as "a0" from "public"."sales" "_" group by "country" ) "_" order by "_"."country" limit 1000001
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

-- # As Looker writes it

SELECT sales.country AS "sales.country", CASE WHEN COALESCE(SUM(sales.amount ), 0) > 20000 THEN 'Yes' ELSE 'No' END AS "sales.is_big", COUNT(*) > 100 AS "sales.busy" FROM public.sales AS sales GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY
--> [country 4] true show f0 > 2000000 ~200000 show f1 > 100 ~10; coalesce(sum(amount), 0) delta 150000 in -100000..150000; count(*) delta 100 in 0..100

SELECT (DATE_TRUNC('month', sales.invoice_date ))::DATE AS "sales.invoice_month", CASE WHEN COUNT(DISTINCT sales.customer_id ) > 20 THEN 'Yes' ELSE 'No' END AS "sales.many" FROM public.sales AS sales GROUP BY (DATE_TRUNC('month', sales.invoice_date )) ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY
--> [month 13] true show f0 > 20 ~2; count(DISTINCT sales.customer_id) delta 1

SELECT sales.country AS "sales.country", CASE WHEN COUNT(*) > 100 THEN 'Yes' ELSE 'No' END AS "sales.busy" FROM public.sales AS sales GROUP BY 1 HAVING (COUNT(*) ) > 10 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY
--> [country 4] f0 > 10 ~1 show f0 > 100 ~10; count(*) delta 100 in 0..100

WITH step1 AS (SELECT sales.country AS country, COALESCE(SUM(sales.amount), 0) AS total FROM public.sales AS sales GROUP BY 1) SELECT step1.country AS "step1.country", CASE WHEN step1.total > 20000 THEN 'Yes' ELSE 'No' END AS "step1.is_big" FROM step1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY
--> [country 4] true show f0 > 2000000 ~200000; coalesce(sum(amount), 0) delta 150000 in -100000..150000

-- # As Grafana writes it

SELECT date_trunc('month', invoice_date) AS "time", country AS metric, CASE WHEN count(*) > 100 THEN 1 ELSE 0 END AS value FROM sales WHERE invoice_date BETWEEN '2011-01-01T00:00:00Z' AND '2011-06-30T23:59:59Z' GROUP BY 1, 2 ORDER BY 1
--> [month 6, country 4] where ("invoice_date" <= timestamp '2011-06-30 23:59:59' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT month AS "time", (count(*) FILTER (WHERE gift) > 20)::int AS gifts, (count(*) > 400)::int AS busy FROM sales GROUP BY month ORDER BY month
--> [month 13] true show f0 > 20 ~2 show f1 > 400 ~40; count(*) FILTER (WHERE gift) delta 100 in 0..100; count(*) delta 100 in 0..100

SELECT extract(epoch FROM month) AS "time", (count(*) > 400)::int AS busy FROM sales GROUP BY month ORDER BY 1
--> [month 13] true show f0 > 400 ~40; count(*) delta 100 in 0..100

-- # And by hand

SELECT country, CASE WHEN count(*) > 100 THEN 'green' WHEN count(*) > 50 THEN 'amber' ELSE 'red' END AS light FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10 show f0 > 50 ~5; count(*) delta 100 in 0..100

SELECT country, to_char(month, 'YYYY-MM') AS m, count(*) > 100 FROM sales GROUP BY country, month
--> [country 4, month 13] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, (count(*) > 100)::text || '!' FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, count(*) > 100 IS TRUE AS busy FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, CASE count(*) > 100 WHEN TRUE THEN 'busy' ELSE 'calm' END FROM sales GROUP BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, decode FROM (SELECT country, CASE WHEN count(*) > 100 THEN 'busy' END AS decode FROM sales GROUP BY country) AS t WHERE decode IS NOT NULL ORDER BY country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, COUNT(*) FILTER (WHERE busy) FROM (SELECT country, month, COUNT(*) > 100 AS busy FROM sales GROUP BY country, month) t GROUP BY country ORDER BY 2 DESC
--> [country 4, month 13] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, iif FROM (SELECT country, (count(*) > 100)::int AS iif FROM sales GROUP BY country) t
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, sum(amount) BETWEEN 5000 AND 20000 AS mid FROM sales GROUP BY country
--> [country 4] true show (f0 > 499999 ~50000 and f0 <= 2000000 ~200000); sum(amount) delta 150000 in -100000..150000

SELECT country, sum(amount) >= 5000 AND sum(amount) < 20000 AS mid FROM sales GROUP BY country
--> [country 4] true show (f0 > 499999 ~50000 and f0 <= 1999999 ~200000); sum(amount) delta 150000 in -100000..150000

SELECT country, max(amount) > 90 AS peak FROM sales GROUP BY country
--> [country 4] true show f0 > 0 ~0; count(*) FILTER (WHERE "amount" > 90) delta 100 in 0..100

SELECT country, stddev(amount) > 10 FROM sales GROUP BY country
--> KH211 stddev(amount)

SELECT country, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) > 15 FROM sales GROUP BY country
--> KH206 percentile_cont(0.5) else [country 4] true show (f0 > -1 ~900 and f1 > 4999 ~500); count(*) FILTER (WHERE "amount" > 15) - 0.5 * count(*) FILTER (WHERE NOT ("amount" IS NULL)) {+2 if "amount" > 15 -1 if NOT ("amount" IS NULL)} delta 100 in -100..100; count(amount) delta 100 in 0..100

SELECT country, percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) > 15 AS dear FROM sales GROUP BY country
--> [country 4] true show f0 > 0 ~10; count(*) FILTER (WHERE "amount" > 15) - 0.5 * count(*) FILTER (WHERE NOT ("amount" IS NULL)) {+2 if "amount" > 15 -1 if NOT ("amount" IS NULL)} delta 100 in -100..100

SELECT coalesce(country, 'all') AS c, count(*) > 100 FROM sales GROUP BY ROLLUP (country)
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100 & [] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, month, count(*) > 100 FROM sales GROUP BY GROUPING SETS ((country), (month))
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100 & [month 13] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, count(*) > 100 AS busy FROM sales GROUP BY country HAVING count(*) > 100
--> [country 4] f0 > 100 ~10 show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT DISTINCT country, count(*) > 100 AS busy FROM sales GROUP BY country ORDER BY busy, country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country, count(*) > 100 AS busy FROM sales GROUP BY country ORDER BY busy DESC NULLS LAST, country OFFSET 1
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT s.country, s.busy AND r.region = 'north' FROM (SELECT country, count(*) > 100 AS busy FROM sales GROUP BY country) s JOIN regions r ON r.name = s.country
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT r.region, bool_or(q.busy) FROM regions r JOIN (SELECT country, count(*) > 100 AS busy FROM sales GROUP BY country) q ON q.country = r.name GROUP BY r.region
--> [country 4] true show f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT month, CASE WHEN count(*) > 400 AND NOT lag(count(*) > 400) OVER w THEN 'rises' END FROM sales GROUP BY month WINDOW w AS (ORDER BY month)
--> [month 13] true show f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT month, first_value(count(*) > 400) OVER (ORDER BY extract(year FROM month), month DESC), array_agg(count(*) > 400) OVER (ROWS 1 PRECEDING) FROM sales GROUP BY month
--> [month 13] true show f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT month, count(*) FILTER (WHERE count(*) > 400) OVER (ORDER BY month) FROM sales GROUP BY month
--> KH101 count(*)

SELECT month, (count(*) > 400) IS DISTINCT FROM lead(count(*) > 400) OVER (ORDER BY month) FROM sales GROUP BY month
--> [month 13] true show f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT n.region, bool_or(count(*) > 400) OVER (PARTITION BY n.region) FROM sales s JOIN regions n ON n.name = s.country GROUP BY s.country, n.region ORDER BY rank() OVER (ORDER BY (count(*) > 400) DESC)
--> [country 4] true show f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT month, lag(count(*)) OVER (ORDER BY month) FROM sales GROUP BY month HAVING count(*) > 400
--> KH101 lag(count(*))

SELECT month, count(*) > lag(count(*)) OVER (ORDER BY month) FROM sales GROUP BY month
--> [month 13] true show f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month, lag(count(*) > 400) OVER w FROM sales GROUP BY month WINDOW w AS (ORDER BY count(*))
--> KH101 lag(count(*)

SELECT month, lag(count(*) > 400) OVER (ORDER BY quantity) FROM sales GROUP BY month
--> KH101 quantity)

SELECT month, sum(quantity) OVER () FROM sales GROUP BY month HAVING count(*) > 400
--> KH101 quantity)

SELECT month, lag(count(*) > 400) OVER (ORDER BY month) FROM sales GROUP BY month ORDER BY count(*) DESC LIMIT 3
--> KH101 lag(count(*)

SELECT month, row_number() OVER (ORDER BY month) FROM sales GROUP BY month
--> KH104 month

SELECT month, lag(count(*) > 100) OVER (PARTITION BY country ORDER BY month) FROM sales GROUP BY country, month ORDER BY count(*) DESC LIMIT 3
--> KH101 lag(count(*)

SELECT country, s.n > 2 * w.n AS big FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) s, (SELECT 3000 AS n) w
--> KH101 count(*)

WITH s AS (SELECT country, count(*) AS n FROM sales GROUP BY country), t AS (SELECT 3000 AS a) SELECT country, n > a AS big FROM s, t
--> KH101 count(*)

WITH s AS (SELECT country, count(*) AS n FROM sales GROUP BY country) SELECT country, width_bucket(s.n, t.a) AS band FROM s, (VALUES (ARRAY[1000, 2000])) t(a)
--> KH101 count(*)

SELECT FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) s WHERE n > 3000
--> [country 4] f0 > 3000 ~300; count(*) delta 100 in 0..100

SELECT country, rank(amount) OVER (ORDER BY n DESC) AS place FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) s
--> KH101 count(*)

SELECT DISTINCT ON (month) country FROM (SELECT month, country, count(*) AS n FROM sales GROUP BY 1, 2) s ORDER BY month DESC, month
--> KH101 count(*)

SELECT country FROM sales country HAVING count(*) OVER () > 5
--> KH105 count(*)

SELECT width_bucket(quantity, 0, 10) AS band FROM sales GROUP BY 1 HAVING count(*) > 500
--> KH202 width_bucket(quantity,
