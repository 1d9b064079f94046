-- # Guards: another literal that fails without values is one; what a refusal shows is affordable.
SELECT country, month FROM sales GROUP BY country, month HAVING sum(quantity) BETWEEN 40000 AND 900000
--> [country 4, month 13] (f0 > 39999 ~4000 and f0 <= 900000 ~90000); sum(quantity) delta 1000 in 0..1000

SELECT country, month FROM sales GROUP BY country, month HAVING sum(quantity) > 40000 AND sum(quantity) < 900000
--> [country 4, month 13] (f0 > 40000 ~4000 and f0 <= 899999 ~90000); sum(quantity) delta 1000 in 0..1000

SELECT country, month FROM sales GROUP BY country, month HAVING NOT (sum(quantity) <= 40000 OR sum(quantity) > 900000)
--> [country 4, month 13] (f0 > 40000 ~4000 and f0 <= 900000 ~90000); sum(quantity) delta 1000 in 0..1000

SELECT country, month FROM sales GROUP BY country, month HAVING sum(quantity) < 900000
--> KH206 sum(quantity) else [country 4, month 13] (f0 <= 899999 ~90000 and f1 > 49 ~5); sum(quantity) delta 1000 in 0..1000; count(DISTINCT (customer_id, month)) FILTER (WHERE quantity IS NOT NULL) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING sum(quantity) > 40000 OR sum(quantity) < 900
--> KH206 sum(quantity) else [country 4, month 13] (f0 > 40000 ~4000 or (f0 <= 899 ~90 and f1 > 49 ~5)); sum(quantity) delta 1000 in 0..1000; count(DISTINCT (customer_id, month)) FILTER (WHERE quantity IS NOT NULL) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING sum(quantity) > 40000 AND avg(amount) < 20
--> [country 4, month 13] (f0 > 40000 ~4000 and f1 <= -1 ~10000); sum(quantity) delta 1000 in 0..1000; avg(amount) - 20 1x-2000 delta 300000 in -300000..144000

SELECT ward FROM visits GROUP BY ward HAVING sum(age) FILTER (WHERE cost > 4) < 5000 AND sum(age) FILTER (WHERE cost > 5) > 500
--> [ward 3] (f0 <= 4999 ~500 and f1 > 500 ~50); sum(age) FILTER (WHERE cost > 4) delta 110; sum(age) FILTER (WHERE cost > 5) delta 110

SELECT ward FROM visits GROUP BY ward HAVING sum(age) FILTER (WHERE cost > 4) < 5000 AND sum(age) > 500
--> KH206 sum(age) else [ward 3] (f0 <= 4999 ~500 and f2 > 49 ~5 and f1 > 500 ~50); sum(age) FILTER (WHERE cost > 4) delta 110; sum(age) delta 110; count(age) FILTER (WHERE cost > 4) delta 1

SELECT ward FROM visits GROUP BY ward HAVING sum(age) < 5000 AND avg(age) > 30
--> KH206 sum(age) else [ward 3] (f0 <= 4999 ~500 and f2 > 49 ~5 and f1 > 0 ~150); sum(age) delta 110; avg(age) - 30 1x-30 delta 80; count(age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING sum(age) < 5000 AND (sum(age) > 400 OR count(*) > 40)
--> KH206 sum(age) else [ward 3] (f0 <= 4999 ~500 and f2 > 49 ~5 and (f0 > 400 ~40 or f1 > 40 ~4)); sum(age) delta 110; count(*) delta 1; count(age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING sum(age) < 5000 AND (sum(age) > 400 OR count(age) > 40)
--> KH206 sum(age) else [ward 3] (f0 <= 4999 ~500 and f1 > 49 ~5 and (f0 > 400 ~40 or f1 > 40 ~4)); sum(age) delta 110; count(age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING every(cost >= 0)
--> KH206 cost else [ward 3] (f0 <= 0 ~0 and f1 > 49 ~5); count(*) FILTER (WHERE "cost" < 0) delta 1; count(cost) delta 1

SELECT ward FROM visits GROUP BY ward HAVING every(cost >= 0) AND count(cost) >= 50
--> [ward 3] (f0 <= 0 ~0 and f1 > 49 ~5); count(*) FILTER (WHERE "cost" < 0) delta 1; count(cost) delta 1

SELECT ward FROM visits GROUP BY ward HAVING every(age > 3 OR cost > 4)
--> KH206 age else [ward 3] (f0 <= 0 ~0 and f1 > 49 ~5); count(*) FILTER (WHERE ("age" <= 3 AND "cost" <= 4)) delta 1; count(*) FILTER (WHERE age > 3 OR cost > 4 OR (age <= 3 AND cost <= 4)) delta 1

SELECT ward FROM visits GROUP BY ward HAVING max(age) < 100
--> KH206 max(age) else [ward 3] (f0 <= 0 ~0 and f1 > 49 ~5); count(*) FILTER (WHERE "age" >= 100) delta 1; count(age) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING avg(amount) BETWEEN -10 AND 60
--> KH206 avg(amount) else [country 4, month 13] (f0 > -1 ~1800000 and f1 > 19999 ~2000 and f2 <= 0 ~10800000); avg(amount) - -10 1x--1000 delta 250000 in -98000..250000; count(amount) delta 100 in 0..100; avg(amount) - 60 1x-6000 delta 700000 in -700000..132000

SELECT country, month FROM sales GROUP BY country, month HAVING max(amount) < 100
--> KH206 max(amount) else [country 4, month 13] (f0 <= 0 ~0 and f1 > 49 ~5); count(*) FILTER (WHERE "amount" >= 100) delta 100 in 0..100; count(DISTINCT (customer_id, month)) FILTER (WHERE amount IS NOT NULL) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING count(*)::numeric / count(DISTINCT customer_id) >= 2
--> KH206 count(*)::numeric else [country 4, month 13] (f0 > -1 ~900 and f1 > 4999 ~500); count(*) / count(DISTINCT customer_id) - 2 delta 98 in -2..98; count(DISTINCT customer_id) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING count(*) / count(DISTINCT customer_id) > 2 AND count(DISTINCT customer_id) > 40
--> [country 4, month 13] (f0 > -1 ~10 and f1 > 40 ~4); count(*) / count(DISTINCT customer_id) - 3 delta 97 in -3..97; count(DISTINCT customer_id) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING sum(amount) / count(DISTINCT customer_id) > 300
--> KH206 sum(amount) else [country 4, month 13] (f0 > 0 ~1350000 and f1 > 499 ~50); sum(amount) / count(DISTINCT customer_id) - 300 delta 130000 in -130000..120000; count(DISTINCT customer_id) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING sum(amount) FILTER (WHERE amount > 5) / nullif(count(DISTINCT customer_id) FILTER (WHERE amount > 5), 0) > 300
--> KH206 sum(amount) else [country 4, month 13] (f0 > 0 ~1350000 and f1 > 499 ~50); sum(amount) FILTER (WHERE amount > 5) / count(DISTINCT customer_id) FILTER (WHERE amount > 5) - 300 delta 130000 in -130000..120000; count(DISTINCT customer_id) FILTER (WHERE amount > 5) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING sum(amount) FILTER (WHERE amount > 5) / count(DISTINCT customer_id) > 300
--> KH206 sum(amount) else [country 4, month 13] (f0 > 0 ~1350000 and f1 > 499 ~50); sum(amount) FILTER (WHERE amount > 5) / count(DISTINCT customer_id) - 300 delta 130000 in -130000..120000; count(DISTINCT customer_id) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING sum(amount) FILTER (WHERE amount > 5) / count(DISTINCT customer_id) FILTER (WHERE amount > 9) > 300
--> KH204 sum(amount)

SELECT country, month FROM sales GROUP BY country, month HAVING count(DISTINCT customer_id) FILTER (WHERE amount > 5) * 1.0 / count(DISTINCT customer_id) > 0.3
--> KH206 count(DISTINCT else [country 4, month 13] (f0 > 0 ~54 and f1 > 199 ~20); count(DISTINCT customer_id) FILTER (WHERE amount > 5) / count(DISTINCT customer_id) - 0.3 {+10 if "amount" > 5 -3} delta 7 in -3..7; count(DISTINCT customer_id) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING 100.0 * count(DISTINCT CASE WHEN amount > 5 THEN customer_id END) / nullif(count(DISTINCT customer_id), 0) >= 25 AND count(DISTINCT customer_id) > 100
--> [country 4, month 13] (f0 > -1 ~9 and f1 > 100 ~10); 100 * count(DISTINCT customer_id) FILTER (WHERE amount > 5) / count(DISTINCT customer_id) - 25 {+4 if "amount" > 5 -1} delta 3 in -1..3; count(DISTINCT customer_id) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING count(*) FILTER (WHERE amount > 5) * 1.0 / count(DISTINCT customer_id) > 2 AND count(DISTINCT customer_id) > 100
--> [country 4, month 13] (f0 > 0 ~18 and f1 > 100 ~10); count(*) FILTER (WHERE amount > 5) / count(DISTINCT customer_id) - 2 delta 98 in -2..98; count(DISTINCT customer_id) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING sum(amount) / count(DISTINCT customer_id) > 0
--> KH204 sum(amount)

SELECT country, month FROM sales GROUP BY country, month HAVING sum(amount) / count(DISTINCT customer_id) <= 300
--> KH206 sum(amount) else [country 4, month 13] (f0 <= 0 ~1350000 and f2 > 49 ~5 and f1 > 499 ~50); sum(amount) / count(DISTINCT customer_id) - 300 delta 130000 in -130000..120000; count(DISTINCT customer_id) delta 1; count(DISTINCT (customer_id, month)) FILTER (WHERE amount IS NOT NULL) delta 1

SELECT country FROM sales GROUP BY country HAVING (country = 'France' AND count(*) > 8000) OR (country <> 'France' AND count(*) > 5000)
--> KH207 country

SELECT country FROM sales WHERE country = 'France' GROUP BY country HAVING count(*) > 8000 UNION SELECT country FROM sales WHERE country <> 'France' GROUP BY country HAVING count(*) > 5000
--> [country 1] f0 > 8000 ~800; count(*) delta 100 in 0..100 & [country 3] f0 > 5000 ~500; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country HAVING NOT (country = 'France' AND count(*) > 8000)
--> KH207 country

SELECT country, row_number() OVER () FROM sales GROUP BY country HAVING count(*) > 8000
--> [country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100

SELECT country, count(*) OVER () AS n FROM sales GROUP BY country HAVING count(*) > 8000
--> [country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY country) FROM sales GROUP BY country HAVING count(*) > 8000
--> [country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY count(*)) FROM sales GROUP BY country HAVING count(*) > 8000
--> [country 4] f0 > 8000 ~800 all rising ~690 priced; count(*) delta 100 in 0..100; count(*) delta 100 in 0..100

SELECT q.*, row_number() OVER () FROM (SELECT country FROM sales GROUP BY country HAVING count(*) > 8000) AS q
--> [country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100

