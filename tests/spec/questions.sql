-- # Questions: keys with their numbers of values, filter, formula in integers (~ is the tolerance), functionals.
SELECT country, month FROM sales GROUP BY country, month HAVING count(*) > 1000
--> [country 4, month 13] f0 > 1000 ~100; count(*) delta 100 in 0..100
SELECT 1 FROM sales GROUP BY country, 1 HAVING count(*) > 1000
--> KH202 1 is not a column with a public domain
SELECT country AS c, date_trunc('month', s.invoice_date) FROM sales s GROUP BY c, 2 HAVING count(*) >= 100
--> [country 4, month 13] f0 > 99 ~10; count(*) delta 100 in 0..100
SELECT country FROM sales WHERE country <> 'France' AND amount > 5.50 GROUP BY country HAVING count(*) < 100
--> [country 3] where "amount" > 5.5 f0 <= 99 ~10; count(*) delta 100 in 0..100
SELECT month FROM sales WHERE month BETWEEN '2011-01-01' AND date '2011-01-01' + interval '3 months' GROUP BY month HAVING count(*) <= 100
--> [month 4] f0 <= 100 ~10; count(*) delta 100 in 0..100
SELECT month FROM sales WHERE date_trunc('month', invoice_date) > now() - interval '2 months' GROUP BY month HAVING count(DISTINCT customer_id) BETWEEN 20 AND 40
--> [month 8] (f0 > 19 ~2 and f0 <= 40 ~4); count(DISTINCT customer_id) delta 1
SELECT country FROM sales WHERE (country LIKE 'F%' OR country IN ('Norway', 'Peru')) AND month = '2011-01-01' GROUP BY country HAVING count(*) > 10
--> [country 2] where "month" = date '2011-01-01' f0 > 10 ~1; count(*) delta 100 in 0..100
SELECT country FROM sales WHERE NOT (quantity > 5.5 OR gift) GROUP BY country HAVING count(*) > 10
--> [country 4] where ("gift" = false AND "quantity" <= 5) f0 > 10 ~1; count(*) delta 100 in 0..100
SELECT country FROM sales WHERE quantity = 5.5 OR quantity <> 2.5 GROUP BY country HAVING count(*) > 10
--> [country 4] where NOT ("quantity" IS NULL) f0 > 10 ~1; count(*) delta 100 in 0..100
SELECT country FROM sales WHERE (quantity = 5) IS NOT TRUE AND gift IS NOT NULL GROUP BY country HAVING count(*) > 10
--> [country 4] where (("quantity" <> 5 OR "quantity" IS NULL) AND NOT ("gift" IS NULL)) f0 > 10 ~1; count(*) delta 100 in 0..100
SELECT country FROM sales WHERE customer_id NOT IN (1, 2, 2) AND '5' < quantity GROUP BY country HAVING count(*) > 10
--> [country 4] where ("quantity" > 5 AND NOT ("customer_id" IN (1, 2))) f0 > 10 ~1; count(*) delta 100 in 0..100
SELECT country FROM sales GROUP BY country HAVING country <> 'France' AND count(*) > 10
--> [country 3] f0 > 10 ~1; count(*) delta 100 in 0..100
SELECT country FROM sales GROUP BY country HAVING sum(amount) > 1000.005
--> [country 4] f0 > 100000 ~10000; sum(amount) delta 150000 in -100000..150000
SELECT country FROM sales GROUP BY country HAVING sum(amount) >= 1000.005 OR sum(amount) > 2000
--> [country 4] (f0 > 100000 ~10000 or f0 > 200000 ~20000); sum(amount) delta 150000 in -100000..150000
SELECT country FROM sales GROUP BY country HAVING sum(quantity) FILTER (WHERE gift) > 100 AND NOT (count(*) > 50 AND count(amount) > 60)
--> [country 4] (f0 > 100 ~10 and (f1 <= 50 ~5 or f2 <= 60 ~6)); sum(quantity) FILTER (WHERE gift) delta 1000 in 0..1000; count(*) delta 100 in 0..100; count(amount) delta 100 in 0..100
SELECT country FROM sales GROUP BY country HAVING avg(amount) > 20
--> [country 4] f0 > 0 ~10000; avg(amount) - 20 1x-2000 delta 300000 in -300000..144000
SELECT country FROM capped_sales GROUP BY country HAVING avg(quantity) > 2.5 OR sum(amount) > 100 OR count(*) = 30
--> [country 4] (f0 > 0 ~25 or f1 > 10000 ~1000 or (f2 > 29 ~3 and f2 <= 30 ~3)); avg(quantity) - 2.5 2x-5 delta 1025; sum(amount) delta 250000; count(*) delta 5
SELECT ward FROM visits GROUP BY ward HAVING avg(cost) < 100.25 AND count(cost) >= 3
--> [ward 3] (f0 <= -1 ~2005 and f1 > 2 ~0); avg(cost) - 100.25 2x-401 delta 19599; count(cost) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age) >= 65 AND count(age) >= 3
--> [ward 3] (f0 > -1 ~325 and f1 > 2 ~0); avg(age) - 65 1x-65 delta 65; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(age) <= 650 AND (count(age) > 40 OR (count(age) > 20 AND count(*) > 30))
--> [ward 3] (f0 <= 650 ~65 and (f1 > 40 ~4 or (f1 > 20 ~2 and f2 > 30 ~3))); sum(age) delta 110; count(age) delta 1; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(age) <> 650
--> KH206 sum(age) <> 650 would hold for groups without values, where SQL says NULL
SELECT ward FROM visits GROUP BY ward HAVING count(*) <> 40
--> [ward 3] (f0 > 40 ~4 or f0 <= 39 ~4); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) IN (40, 50) OR count(*) = 60.5
--> [ward 3] ((f0 > 39 ~4 and f0 <= 40 ~4) or (f0 > 49 ~5 and f0 <= 50 ~5)); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING 2 * count(*) + 5 > 105 AND 100 < count(*) + 20 AND -count(*) < 3
--> [ward 3] (f0 > 50 ~5 and f0 > 80 ~8); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN age > 65 THEN 1 ELSE 0 END) > 40 AND count(CASE WHEN age > 65 THEN 1 END) > 40
--> [ward 3] f0 > 40 ~4; sum(CASE WHEN age > 65 THEN 1 ELSE 0 END) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN insured THEN cost END) > 4000
--> [ward 3] f0 > 8000 ~800; sum(CASE WHEN insured THEN cost END) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN insured THEN 1 ELSE 0 END) < 40 AND count(*) > 60
--> [ward 3] (f0 <= 39 ~4 and f1 > 60 ~6); sum(CASE WHEN insured THEN 1 ELSE 0 END) delta 1; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) >= 0
--> [ward 3] true; 
SELECT ward FROM visits GROUP BY ward HAVING count(*) > NULL OR count(*) > 30
--> [ward 3] f0 > 30 ~3; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 30) IS TRUE AND TRUE AND 1 < 2
--> [ward 3] f0 > 30 ~3; count(*) delta 1
SELECT arrived::date, extract(hour FROM arrived) FROM visits GROUP BY arrived::date, extract(hour FROM arrived) HAVING count(*) > 30
--> [day 10, hour 24] f0 > 30 ~3; count(*) delta 1
SELECT ward FROM visits WHERE reference = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11' AND day > '2026-01-05' GROUP BY ward HAVING count(*) > 30
--> [ward 3] where ("day" > date '2026-01-05' AND "reference" = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11') f0 > 30 ~3; count(*) delta 1
SELECT country FROM sales GROUP BY country, month HAVING count(DISTINCT (customer_id, month)) > 30 OR count(DISTINCT customer_id) > 60
--> [country 4, month 13] (f0 > 30 ~3 or f0 > 60 ~6); count(DISTINCT customer_id, month) delta 1
SELECT country FROM sales WHERE month = '2011-03-01' GROUP BY country HAVING count(DISTINCT customer_id) > 30
--> [country 4] where "month" = date '2011-03-01' f0 > 30 ~3; count(DISTINCT customer_id) delta 1
SELECT country FROM sales GROUP BY country HAVING count(DISTINCT customer_id) FILTER (WHERE month IN ('2011-03-01') AND quantity > 3) > 30
--> [country 4] f0 > 30 ~3; count(DISTINCT customer_id) FILTER (WHERE month IN ('2011-03-01') AND quantity > 3) delta 1
SELECT country FROM sales WHERE month = '2011-03-01' OR quantity > 3 GROUP BY country HAVING count(DISTINCT customer_id) > 30
--> [country 4] where ("month" = date '2011-03-01' OR "quantity" > 3) f0 > 30 ~3; count(DISTINCT customer_id) delta 1 in 0..1
SELECT country FROM sales WHERE month IN ('2011-03-01', '2011-04-01') GROUP BY country HAVING count(DISTINCT customer_id) > 30
--> [country 4] where "month" IN (date '2011-03-01', date '2011-04-01') f0 > 30 ~3; count(DISTINCT customer_id) delta 1 in 0..1
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT age) FILTER (WHERE cost > 5) > 30
--> [ward 3] f0 > 30 ~3; count(DISTINCT age) FILTER (WHERE cost > 5) delta 1
SELECT country FROM sales GROUP BY country HAVING count(DISTINCT stock_code) > 200
--> [country 4] f0 > 200 ~20; count(DISTINCT stock_code) delta 100 in 0..100
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT height) > 10
--> [ward 3] f0 > 10 ~1; count(DISTINCT height) delta 1
-- # Joins with public tables: looked-up columns are keys and conditions like the table's own.
SELECT region FROM sales JOIN regions ON country = name GROUP BY region HAVING count(*) > 1000
--> [region 3] f0 > 1000 ~100; count(*) delta 100 in 0..100
SELECT name FROM sales JOIN regions ON country = name WHERE region = 'West' GROUP BY name HAVING count(*) > 1000
--> [country 2] f0 > 1000 ~100; count(*) delta 100 in 0..100
SELECT month FROM sales LEFT JOIN regions r ON country = r.name GROUP BY month HAVING count(*) FILTER (WHERE r.region IS NULL) > 1000
--> [month 13] f0 > 1000 ~100; count(*) FILTER (WHERE r.region IS NULL) delta 100 in 0..100
SELECT true FROM sales HAVING count(*) > 1000
--> [] f0 > 1000 ~100; count(*) delta 100 in 0..100
SELECT 1 AS one FROM sales WHERE country = 'France' GROUP BY () HAVING avg(amount) > 20 ORDER BY 1
--> [] where "country" = 'France' f0 > 0 ~10000; avg(amount) - 20 1x-2000 delta 300000 in -300000..144000
-- # year on year
SELECT country FROM sales GROUP BY country HAVING 1.0 * count(*) FILTER (WHERE month >= '2011-01-01') / nullif(count(*) FILTER (WHERE month < '2011-01-01'), 0) > 1.1 AND count(*) FILTER (WHERE month < '2011-01-01') >= 500
--> [country 4] (f0 > 0 ~495 and f1 > 499 ~50); count(*) FILTER (WHERE month >= '2011-01-01') / count(*) FILTER (WHERE month < '2011-01-01') - 1.1 {+10 if "month" >= date '2011-01-01' -11 if "month" < date '2011-01-01'} delta 1100 in -1100..1000; count(*) FILTER (WHERE month < '2011-01-01') delta 100 in 0..100
