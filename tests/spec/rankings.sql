-- # Rankings: ORDER BY an aggregate over the catalog `retail`, with keyhole.tolerance = '100, sum(amount)=5000' and $1 = 3.
SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 2
--> [country 4] true first 2 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC
--> [country 4] true all falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) LIMIT 2
--> [country 4] true first 2 rising ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) ASC NULLS LAST FETCH FIRST 3 ROWS ONLY
--> [country 4] true first 3 rising ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC FETCH NEXT ROW ONLY
--> [country 4] true first 1 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY 1 ORDER BY sum(amount) DESC NULLS LAST, country LIMIT 100
--> [country 4] true first 100 falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT country AS "Land" FROM sales AS s GROUP BY s.country ORDER BY sum(s.amount) DESC, "Land" LIMIT 10 OFFSET 0
--> [country 4] true first 10 falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT country FROM sales GROUP BY country ORDER BY -count(*) LIMIT 2
--> [country 4] true first 2 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY 7 - 2 * count(*) LIMIT 2
--> [country 4] true first 2 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY (count(*)) DESC LIMIT 2 + 1
--> [country 4] true first 3 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT ALL
--> [country 4] true all falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT NULL
--> [country 4] true all falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT '3'
--> [country 4] true first 3 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 2.5
--> KH106 2.5

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT (SELECT 3)
--> KH107 3)

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT $1
--> [country 4] true first 3 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY sum(amount)::float DESC LIMIT 3
--> [country 4] true first 3 falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT country FROM sales GROUP BY country ORDER BY coalesce(sum(amount), 0) DESC LIMIT 3
--> [country 4] true first 3 falling ~10000 signed; coalesce(sum(amount), 0) delta 150000 in -100000..150000

SELECT country FROM sales GROUP BY country ORDER BY coalesce(sum(amount), 5) DESC LIMIT 3
--> KH204 coalesce(sum(amount),

SELECT country FROM sales GROUP BY country ORDER BY sum(amount) - 2 * sum(quantity) DESC LIMIT 3
--> [country 4] true first 3 falling ~500000 signed; sum(amount) - 2 * sum(quantity) {+1 amount -200 quantity} delta 300000 in -300000..150000

SELECT country FROM sales GROUP BY country ORDER BY sum(amount * quantity) DESC LIMIT 3
--> [country 4] true first 3 falling ~10000 signed; sum(amount * quantity) delta 500000000 in -500000000..500000000

SELECT country FROM sales GROUP BY country ORDER BY sum(CASE WHEN quantity > 3 THEN amount ELSE 0 END) DESC LIMIT 3
--> [country 4] true first 3 falling ~10000 signed; sum(CASE WHEN quantity > 3 THEN amount ELSE 0 END) delta 150000 in -100000..150000

SELECT country FROM sales GROUP BY country ORDER BY sum(CASE WHEN gift THEN 1 END) DESC LIMIT 3
--> [country 4] true first 3 falling ~100; sum(CASE WHEN gift THEN 1 END) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) FILTER (WHERE quantity > 3) DESC LIMIT 3
--> [country 4] true first 3 falling ~100; count(*) FILTER (WHERE quantity > 3) delta 100 in 0..100

SELECT country FROM sales WHERE quantity > 3 GROUP BY country ORDER BY count(DISTINCT customer_id) DESC LIMIT 3
--> [country 4] where "quantity" > 3 true first 3 falling ~100; count(DISTINCT customer_id) delta 1 in 0..1

SELECT country FROM sales GROUP BY country ORDER BY count(DISTINCT stock_code) DESC LIMIT 3
--> [country 4] true first 3 falling ~100; count(DISTINCT stock_code) delta 100 in 0..100

SELECT country, month FROM sales GROUP BY country, month ORDER BY sum(amount) DESC LIMIT 3
--> [country 4, month 13] true first 3 falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT country, date_trunc('month', invoice_date) AS m FROM sales WHERE country <> 'Norway' GROUP BY 1, 2 ORDER BY sum(amount) DESC LIMIT 3
--> [country 3, month 13] true first 3 falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT country FROM sales GROUP BY country HAVING count(*) > 1000 ORDER BY sum(amount) DESC LIMIT 3
--> [country 4] f0 > 1000 ~100 first 3 falling ~500000 signed; count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000

SELECT country, count(*) > 100 AS big FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 3
--> [country 4] true show f0 > 100 ~100 first 3 falling ~100; count(*) delta 100 in 0..100; count(*) delta 100 in 0..100

SELECT region FROM sales JOIN regions ON country = name GROUP BY region ORDER BY count(*) DESC LIMIT 1
--> [region 3] true first 1 falling ~100; count(*) delta 100 in 0..100

SELECT ward FROM (SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT 2) q ORDER BY ward
--> [ward 3] true first 2 falling ~100; count(*) delta 1

WITH top AS (SELECT ward FROM visits GROUP BY ward ORDER BY sum(cost) DESC LIMIT 2) SELECT count(*) FROM top
--> [ward 3] true first 2 falling ~200; sum(cost) delta 10000

SELECT ward FROM visits GROUP BY ward ORDER BY count(*) FILTER (WHERE insured) - count(*) FILTER (WHERE NOT insured) DESC LIMIT 1
--> [ward 3] true first 1 falling ~100 signed; count(*) FILTER (WHERE insured) - count(*) FILTER (WHERE NOT insured) {+1 if "insured" = true -1 if "insured" = false} delta 1

SELECT true FROM visits HAVING count(*) > 10 ORDER BY count(*)
--> [] f0 > 10 ~100 all rising ~100; count(*) delta 1; count(*) delta 1

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 3 OFFSET 2
--> [country 4] true first 5 behind 2 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 3 OFFSET $1
--> [country 4] true first 6 behind 3 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC FETCH FIRST 3 ROWS WITH TIES
--> KH106 3

SELECT country FROM sales GROUP BY country ORDER BY avg(amount) DESC LIMIT 3
--> [country 4] true first 3 falling ~99999 signed mean of 10000 in steps of 0.001 moved 9901; avg(amount) 1x--50000 delta 5150000 in 0..5150000; values of avg(amount) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY max(amount) DESC LIMIT 3
--> KH204 max(amount)

SELECT country FROM sales GROUP BY country ORDER BY sum(amount) / count(*) DESC LIMIT 3
--> [country 4] true first 3 falling ~9999 signed mean of 10000 in steps of 0.01 moved 1000; sum(amount) / count(*) {+1 amount +50000} delta 10000000 in 0..10000000; values of sum(amount) / count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY stddev(amount) DESC LIMIT 3
--> KH204 stddev(amount)

SELECT country FROM sales GROUP BY country ORDER BY percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) LIMIT 3
--> KH204 percentile_cont(0.5)

SELECT country FROM sales GROUP BY country ORDER BY bool_or(gift) DESC LIMIT 3
--> [country 4] true show f0 > 0 ~0; count(*) FILTER (WHERE "gift" = true) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY sum(weight) DESC LIMIT 3
--> KH203 sum(weight)

SELECT country FROM sales GROUP BY country ORDER BY abs(sum(amount)) DESC LIMIT 3
--> KH204 abs(sum(amount))

SELECT country FROM sales GROUP BY country ORDER BY sum(amount) * sum(quantity) DESC LIMIT 3
--> KH204 sum(amount)

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC, sum(amount) DESC LIMIT 3
--> KH101 sum(amount)

SELECT country FROM sales GROUP BY country ORDER BY country, count(*) DESC LIMIT 3
--> KH101 count(*)

SELECT country FROM sales GROUP BY country ORDER BY count(*) > 100 DESC, count(*) DESC LIMIT 3
--> KH101 count(*)

SELECT country, count(*) FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 3
--> KH101 count(*)

SELECT country, count(*) AS n FROM sales GROUP BY country ORDER BY n DESC LIMIT 3
--> KH101 count(*)

SELECT country, sum(amount) FROM sales GROUP BY country ORDER BY 2 DESC LIMIT 3
--> KH101 sum(amount)

SELECT country FROM sales GROUP BY country ORDER BY rank() OVER (ORDER BY count(*) DESC) LIMIT 3
--> KH101 rank()

SELECT country FROM sales GROUP BY country ORDER BY count(*) * (count(*) > 5)::int DESC LIMIT 3
--> KH101 count(*)

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 3 FOR UPDATE
--> KH106 sales

SELECT DISTINCT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 3
--> [country 4] true first 3 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY n DESC LIMIT 3
--> [country 4] true first 3 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, sum(amount) AS total FROM sales GROUP BY country) q ORDER BY total DESC LIMIT 3
--> [country 4] true first 3 falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT stock_code FROM sales GROUP BY stock_code ORDER BY count(*) DESC LIMIT 3
--> KH202 stock_code

(SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 1) UNION (SELECT country FROM sales GROUP BY country ORDER BY count(*) LIMIT 1)
--> [country 4] true first 1 falling ~100; count(*) delta 100 in 0..100 | [country 4] true first 1 rising ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country UNION SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 1
--> [country 4] true;  | [country 4] true; 

SELECT ward FROM visits GROUP BY ward ORDER BY sum(cost) DESC LIMIT 0
--> [ward 3] true first 0 falling ~200; sum(cost) delta 10000

SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT -1
--> [ward 3] true first 0 falling ~100; count(*) delta 1
