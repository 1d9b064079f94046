-- # Places in windows, DISTINCT ON and around a question, over `retail`, with keyhole.tolerance = '100, sum(amount)=5000' and $1 = 3.
SELECT country, rank() OVER (ORDER BY sum(amount) DESC) <= 2 AS top FROM sales GROUP BY country
--> [country 4] true first 2 falling ~500000 signed of all; sum(amount) delta 150000 in -100000..150000

SELECT country, 2 >= row_number() OVER (ORDER BY sum(amount) DESC) AS top FROM sales GROUP BY country
--> [country 4] true first 2 falling ~500000 signed of all; sum(amount) delta 150000 in -100000..150000

SELECT country, NOT rank() OVER (ORDER BY count(*)) > 2 AS last FROM sales GROUP BY country
--> [country 4] true first 2 rising ~100 of all; count(*) delta 100 in 0..100

SELECT country, CASE WHEN dense_rank() OVER (ORDER BY count(*) DESC) < 2 THEN 'first' ELSE 'rest' END FROM sales GROUP BY country
--> [country 4] true first 1 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country, CASE WHEN rank() OVER (ORDER BY count(*) DESC) <= 1 THEN 'first' WHEN rank() OVER (ORDER BY count(*) DESC) <= 3 THEN 'next' END FROM sales GROUP BY country
--> [country 4] true first 3 falling ~100 cut of all; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY count(*) DESC) BETWEEN 2 AND 3 FROM sales GROUP BY country
--> [country 4] true first 3 behind 1 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY count(*) DESC) = 2 FROM sales GROUP BY country
--> [country 4] true first 2 behind 1 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY count(*) DESC) <= $1 FROM sales GROUP BY country
--> [country 4] true first 3 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY count(*) DESC) <= 0 FROM sales GROUP BY country
--> [country 4] true first 0 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY count(*) DESC) FROM sales GROUP BY country
--> [country 4] true all falling ~100; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY count(*) DESC, country) AS r FROM sales GROUP BY country ORDER BY r LIMIT 3
--> [country 4] true first 3 falling ~100; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country ORDER BY r DESC LIMIT 3
--> [country 4] true all falling ~100; count(*) delta 100 in 0..100

SELECT country, row_number() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 3
--> [country 4] true first 3 falling ~100; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY count(*) DESC) * 10 FROM sales GROUP BY country
--> [country 4] true all falling ~100 cut; count(*) delta 100 in 0..100

SELECT country, month, rank() OVER (PARTITION BY month ORDER BY sum(amount) DESC NULLS LAST) = 1 AS best FROM sales GROUP BY country, month
--> [country 4, month 13] true first 1 per month falling ~500000 signed of all; sum(amount) delta 150000 in -100000..150000

SELECT country, rank() OVER (PARTITION BY date_trunc('month', invoice_date) ORDER BY sum(amount) DESC) <= 2 FROM sales GROUP BY country, date_trunc('month', invoice_date)
--> [country 4, month 13] true first 2 per month falling ~500000 signed of all; sum(amount) delta 150000 in -100000..150000

SELECT country, ntile(4) OVER (ORDER BY sum(amount)) AS quarter FROM sales GROUP BY country HAVING count(*) > 100
--> [country 4] f0 > 100 ~100 all rising ~500000 signed cut; count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000

SELECT country, ntile(2) OVER (PARTITION BY month ORDER BY count(*)) FROM sales GROUP BY country, month
--> [country 4, month 13] true all per month rising ~100 cut; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, percent_rank() OVER (ORDER BY count(*) DESC) AS p FROM sales GROUP BY country) q WHERE p <= .1
--> [country 4] true all falling ~100 cut; count(*) delta 100 in 0..100

SELECT country, cume_dist() OVER (ORDER BY count(*)) > 0.5 FROM sales GROUP BY country
--> [country 4] true all rising ~100 cut; count(*) delta 100 in 0..100

SELECT country, sum(amount) > 20000 AS big, rank() OVER (ORDER BY sum(amount) DESC) <= 2 AS top FROM sales GROUP BY country
--> [country 4] true show f0 > 2000000 ~500000 first 2 falling ~500000 signed of all; sum(amount) delta 150000 in -100000..150000; sum(amount) delta 150000 in -100000..150000

SELECT month, country FROM (SELECT month, country, row_number() OVER (PARTITION BY month ORDER BY sum(amount) DESC) AS place FROM sales GROUP BY 1, 2) q WHERE place <= 3
--> [month 13, country 4] true first 3 per month falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

WITH q AS (SELECT month, country, row_number() OVER (PARTITION BY month ORDER BY sum(amount) DESC) AS place FROM sales GROUP BY 1, 2) SELECT q.month, q.country FROM q WHERE q.place = 1 AND country <> 'Norway' ORDER BY month
--> [month 13, country 4] true first 1 per month falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

WITH q AS (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country), top AS (SELECT country, r AS place FROM q) SELECT country FROM top WHERE place < 3
--> [country 4] true first 2 falling ~100; count(*) delta 100 in 0..100

WITH q AS (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country), top AS (SELECT * FROM q) SELECT country FROM top WHERE r IN (1, 3)
--> [country 4] true all falling ~100 cut; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) FROM sales GROUP BY country) q WHERE rank <= 2
--> [country 4] true first 2 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, row_number() OVER (ORDER BY count(*) DESC) FROM sales GROUP BY country) q WHERE row_number <= 2
--> [country 4] true first 2 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country) q WHERE r <= 2 OR country = 'Norway'
--> [country 4] true first 2 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country) q WHERE r > 1 AND r <= 3
--> [country 4] true first 3 behind 1 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country) q WHERE r > 2
--> [country 4] true first 2 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country) q ORDER BY r LIMIT 2
--> [country 4] true first 2 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country) q ORDER BY r LIMIT 2 OFFSET 1
--> [country 4] true first 3 behind 1 falling ~100; count(*) delta 100 in 0..100

SELECT country, CASE WHEN r <= 2 THEN 'top' ELSE 'rest' END FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country) q
--> [country 4] true first 2 falling ~100 of all; count(*) delta 100 in 0..100

SELECT q.country, r.region FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS place FROM sales GROUP BY country) q LEFT JOIN regions r ON r.name = q.country WHERE q.place <= 2
--> [country 4] true first 2 falling ~100; count(*) delta 100 in 0..100

SELECT max(r) FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country) q
--> [country 4] true all falling ~100 cut; count(*) delta 100 in 0..100

SELECT DISTINCT ON (month) month, country FROM sales GROUP BY month, country ORDER BY month, sum(amount) DESC
--> [month 13, country 4] true first 1 per month falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT DISTINCT ON (1) month AS m, country FROM sales GROUP BY month, country ORDER BY 1 DESC, count(*), country LIMIT 5
--> [month 13, country 4] true first 1 per month rising ~100; count(*) delta 100 in 0..100

SELECT DISTINCT ON (m) month AS m, country FROM sales GROUP BY month, country ORDER BY m, count(*) DESC
--> [month 13, country 4] true first 1 per month falling ~100; count(*) delta 100 in 0..100

SELECT DISTINCT ON (country) country, ward FROM visits JOIN stays USING (patient) GROUP BY 1, 2 ORDER BY country, count(*) DESC
--> KH107 stays

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 2 OFFSET 1
--> [country 4] true first 3 behind 1 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC OFFSET 1 ROW FETCH NEXT 2 ROWS ONLY
--> [country 4] true first 3 behind 1 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 2 OFFSET $1
--> [country 4] true first 5 behind 3 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC OFFSET 2
--> [country 4] true all behind 2 falling ~100; count(*) delta 100 in 0..100

SELECT ward FROM (SELECT ward, patient_id, sum(cost) AS total FROM visits GROUP BY 1, 2) v GROUP BY ward ORDER BY count(*) DESC LIMIT 2
--> KH101 sum(cost)

SELECT ward, rank() OVER (ORDER BY count(*) DESC) <= 2 AS top FROM visits WHERE insured GROUP BY ward
--> [ward 3] where "insured" = true true first 2 falling ~100 of all; count(*) delta 1

SELECT country, rank() OVER (ORDER BY count(*) DESC) <= 3, rank() OVER (ORDER BY sum(amount) DESC) <= 3 FROM sales GROUP BY country
--> KH106 sum(amount)

SELECT country, rank() OVER (ORDER BY count(*) DESC) <= 3, rank() OVER (ORDER BY count(*)) <= 3 FROM sales GROUP BY country
--> KH106 count(*))

SELECT country, month, rank() OVER (PARTITION BY month ORDER BY count(*) DESC) <= 3 FROM sales GROUP BY 1, 2 ORDER BY count(*) DESC
--> KH106 count(*)

SELECT country, rank() OVER (PARTITION BY customer_id ORDER BY count(*) DESC) <= 3 FROM sales GROUP BY country
--> KH106 customer_id

SELECT country, rank() OVER (PARTITION BY extract(year FROM month) ORDER BY count(*) DESC) <= 3 FROM sales GROUP BY country, month
--> KH106 month)

SELECT country, rank() OVER (ORDER BY count(*) DESC, customer_id) <= 3 FROM sales GROUP BY country
--> KH101 customer_id)

SELECT country, rank() OVER (ORDER BY count(*) DESC, sum(amount)) <= 3 FROM sales GROUP BY country
--> KH101 rank()

SELECT country, ntile(count(*)::int) OVER (ORDER BY count(*) DESC) FROM sales GROUP BY country
--> KH101 ntile(count(*)::int)

SELECT country, ntile(customer_id) OVER (ORDER BY count(*) DESC) FROM sales GROUP BY country
--> KH101 customer_id)

SELECT country, rank() OVER (ORDER BY avg(amount) DESC) <= 3 FROM sales GROUP BY country
--> [country 4] true first 3 falling ~99999 signed of all mean of 10000 in steps of 0.001 moved 9901; avg(amount) 1x--50000 delta 5150000 in 0..5150000; values of avg(amount) delta 100 in 0..100

SELECT country, rank() OVER w <= 3 FROM sales GROUP BY country WINDOW w AS (ORDER BY count(*) DESC)
--> [country 4] true first 3 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country, sum(amount) OVER (ORDER BY count(*) DESC) FROM sales GROUP BY country
--> KH101 sum(amount)

SELECT country, count(*), rank() OVER (ORDER BY count(*) DESC) <= 3 FROM sales GROUP BY country
--> KH101 count(*),

SELECT country, rank() OVER (ORDER BY count(*) DESC) <= count(*) FROM sales GROUP BY country
--> KH101 count(*)

SELECT country, row_number() OVER (ORDER BY count(*) DESC ROWS UNBOUNDED PRECEDING) <= 3 FROM sales GROUP BY country
--> KH101 row_number()

WITH m AS (SELECT month, country, sum(amount) AS s FROM sales GROUP BY 1, 2), r AS (SELECT month, country, row_number() OVER (PARTITION BY month ORDER BY s DESC) AS place FROM m) SELECT month, country FROM r WHERE place <= 3
--> [month 13, country 4] true first 3 per month falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT country FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY q.n DESC NULLS LAST, country FETCH FIRST 3 ROWS ONLY
--> [country 4] true first 3 falling ~100; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY n DESC) FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 100) q
--> [country 4] f0 > 100 ~100 all falling ~100; count(*) delta 100 in 0..100; count(*) delta 100 in 0..100

WITH t AS (SELECT country, sum(amount) AS total, avg(amount) AS mean FROM sales GROUP BY country) SELECT country, ntile(4) OVER (ORDER BY total) AS quartile FROM t
--> [country 4] true all rising ~500000 signed cut; sum(amount) delta 150000 in -100000..150000

SELECT country, rank() OVER (ORDER BY n DESC) <= 2 AS top FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE country <> 'Norway'
--> [country 3] true first 2 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country, n, rank() OVER (ORDER BY n DESC) FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> KH101 count(*)

SELECT country FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY n DESC
--> KH101 count(*)

SELECT country, rank() OVER (ORDER BY n DESC) * n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> KH101 count(*)

SELECT q.country FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q JOIN regions r ON r.name = q.country ORDER BY n DESC LIMIT 2
--> KH101 count(*)

SELECT country FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country) q WHERE r <= 3 AND r <> 2
--> [country 4] true first 3 falling ~100 cut of all; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country) q WHERE r <= 3 AND r <> 1
--> [country 4] true first 3 behind 1 falling ~100; count(*) delta 100 in 0..100

SELECT country, count(*) = max(count(*)) OVER () AS top FROM sales GROUP BY country
--> [country 4] true first 1 falling ~100 of all; count(*) delta 100 in 0..100

SELECT month, country, min(sum(amount)) OVER (PARTITION BY month) >= sum(amount) AS least FROM sales GROUP BY month, country
--> [month 13, country 4] true first 1 per month rising ~500000 signed of all; sum(amount) delta 150000 in -100000..150000

SELECT month, country FROM (SELECT month, country, count(*) AS n, max(count(*)) OVER (PARTITION BY month) AS m FROM sales GROUP BY 1, 2) z WHERE n = m
--> [month 13, country 4] true first 1 per month falling ~100; count(*) delta 100 in 0..100

SELECT month, country FROM (SELECT month, max(count(*)) OVER (PARTITION BY month) AS m, count(*) AS n, country FROM sales GROUP BY 1, 4) z WHERE z.m <= z.n AND country <> 'Norway'
--> [month 13, country 4] true first 1 per month falling ~100; count(*) delta 100 in 0..100

SELECT month, country FROM (SELECT month, country, n, max(n) OVER (PARTITION BY month) AS m FROM (SELECT month, country, count(*) AS n FROM sales GROUP BY 1, 2) q) z WHERE n = m
--> [month 13, country 4] true first 1 per month falling ~100; count(*) delta 100 in 0..100

WITH q AS (SELECT month, country, sum(amount) AS n FROM sales GROUP BY 1, 2), z AS (SELECT q.*, max(n) OVER (PARTITION BY month) AS m FROM q) SELECT month, country FROM z WHERE n = m
--> [month 13, country 4] true first 1 per month falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

WITH q AS (SELECT country, count(*) AS n FROM sales GROUP BY country) SELECT country FROM q WHERE n = (SELECT max(n) FROM q)
--> [country 4] true first 1 falling ~100; count(*) delta 100 in 0..100

WITH q AS (SELECT country, avg(amount) AS n FROM sales GROUP BY country) SELECT country FROM q WHERE n <= ALL (SELECT n FROM q)
--> [country 4] true first 1 rising ~99999 signed mean of 10000 in steps of 0.001 moved 9901; avg(amount) 1x-50000 delta 5100000 in -5100000..0; values of avg(amount) delta 100 in 0..100

WITH q AS (SELECT month, country, count(*) AS n FROM sales GROUP BY 1, 2) SELECT month, country FROM q WHERE n = (SELECT max(n) FROM q AS r WHERE r.month = q.month)
--> [month 13, country 4] true first 1 per month falling ~100; count(*) delta 100 in 0..100

WITH q AS (SELECT country, count(*) AS n FROM sales GROUP BY country) SELECT country, n FROM q WHERE n = (SELECT max(n) FROM q)
--> KH101 count(*)

WITH q AS (SELECT country, count(*) AS n FROM sales GROUP BY country) SELECT country FROM q WHERE n > (SELECT max(n) FROM q)
--> [country 4] f0 > 0 ~100; count(*) - max(count(*)) OVER () {} delta 100

WITH q AS (SELECT country, count(*) AS n FROM sales GROUP BY country) SELECT country FROM q WHERE n = (SELECT max(n) FROM q WHERE country <> 'Norway')
--> KH101 count(*)

SELECT country FROM sales GROUP BY country HAVING count(*) >= ALL (SELECT count(*) FROM sales GROUP BY country)
--> [country 4] true first 1 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales s WHERE s.quantity > 3 GROUP BY 1 HAVING (SELECT min(t.n) FROM (SELECT country, sum(o.amount) AS n FROM sales o WHERE o.quantity > 3 GROUP BY 1) t) >= sum(s.amount) ORDER BY 1
--> [country 4] where "quantity" > 3 true first 1 rising ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT quantity > 9 AS big FROM sales GROUP BY quantity > 9 HAVING count(*) = (SELECT count(*) AS n FROM sales GROUP BY NOT quantity <= 9 ORDER BY n DESC LIMIT 1)
--> [quantity > 9 3] true first 1 falling ~100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country HAVING count(*) >= ALL (SELECT count(*) FROM sales WHERE quantity > 3 GROUP BY country)
--> KH107 count(*)

SELECT country FROM sales GROUP BY country HAVING count(*) >= ALL (SELECT count(*) FROM sales GROUP BY country, month)
--> KH107 count(*)

SELECT country FROM sales GROUP BY country HAVING count(*) > ALL (SELECT count(*) FROM sales GROUP BY country)
--> KH107 count(*)

SELECT country FROM sales GROUP BY country HAVING count(*) <= (SELECT max(n) FROM (SELECT count(*) AS n FROM sales GROUP BY country) x)
--> [country 4] f0 <= 0 ~100; count(*) - max(count(*)) OVER () {} delta 100

SELECT country, quantity > 9, rank() OVER (PARTITION BY NOT quantity <= 9 ORDER BY count(*) DESC) = 1 FROM sales GROUP BY country, quantity > 9
--> [country 4, quantity > 9 3] true first 1 per quantity > 9 falling ~100 of all; count(*) delta 100 in 0..100

SELECT country, quantity > 9, rank() OVER (PARTITION BY quantity > 8 ORDER BY count(*) DESC) = 1 FROM sales GROUP BY country, quantity > 9
--> KH106 quantity

SELECT * FROM (SELECT country, count(*) AS n, max(count(*)) OVER () AS m FROM sales GROUP BY 1) z WHERE n = m
--> KH101 count(*)

SELECT country FROM (SELECT country, count(*) AS n, max(sum(amount)) OVER () AS m FROM sales GROUP BY 1) z WHERE n = m
--> [country 4] (f0 > -1 ~10000 and f0 <= 0 ~10000); count(*) - max(sum(amount)) OVER () {} delta 160000

SELECT month, country FROM (SELECT month, country, count(*) AS n, max(count(*)) OVER (PARTITION BY month ORDER BY country) AS m FROM sales GROUP BY 1, 2) z WHERE n = m
--> KH204 n

SELECT country, CASE WHEN max(count(*)) OVER () = count(*) THEN 'top' ELSE 'rest' END FROM sales GROUP BY country
--> [country 4] true first 1 falling ~100 of all; count(*) delta 100 in 0..100

WITH q AS (SELECT month, country, sum(amount) AS n FROM sales GROUP BY 1, 2), z AS (SELECT q.*, max(n) OVER (PARTITION BY month) AS m FROM q) SELECT month, country FROM z WHERE n = m
--> [month 13, country 4] true first 1 per month falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

WITH q AS (SELECT month, country, sum(amount) AS n FROM sales GROUP BY 1, 2), z AS (SELECT *, row_number() OVER (PARTITION BY month ORDER BY n DESC) AS r FROM q) SELECT month, country FROM z WHERE r <= 2
--> [month 13, country 4] true first 2 per month falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT t.country, t.p FROM (SELECT q.*, rank() OVER (ORDER BY q.n) AS p FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q) t
--> [country 4] true all rising ~100; count(*) delta 100 in 0..100

SELECT month, first_value(country) OVER (PARTITION BY month ORDER BY count(*) DESC) AS best FROM sales GROUP BY month, country
--> [month 13, country 4] true first 1 per month falling ~100 of all; count(*) delta 100 in 0..100

SELECT DISTINCT month, first_value(country) OVER (PARTITION BY month ORDER BY count(*) DESC) AS best FROM sales GROUP BY month, country
--> [month 13, country 4] true first 1 per month falling ~100 of all; count(*) delta 100 in 0..100

WITH q AS (SELECT month, country, count(*) AS n FROM sales GROUP BY 1, 2) SELECT DISTINCT month, first_value(country) OVER (PARTITION BY month ORDER BY n DESC) FROM q
--> [month 13, country 4] true first 1 per month falling ~100 of all; count(*) delta 100 in 0..100

SELECT DISTINCT month, first_value(count(*)) OVER (PARTITION BY month ORDER BY count(*) DESC) AS best FROM sales GROUP BY month, country
--> KH101 first_value(count(*))

SELECT DISTINCT month, last_value(country) OVER (PARTITION BY month ORDER BY count(*) DESC) AS best FROM sales GROUP BY month, country
--> KH101 last_value(country)

SELECT DISTINCT ON (month) month, country FROM (SELECT month, country, sum(amount) AS n FROM sales GROUP BY 1, 2) q WHERE country <> 'Norway' ORDER BY month, n DESC, country
--> [month 13, country 3] true first 1 per month falling ~500000 signed; sum(amount) delta 150000 in -100000..150000

SELECT DISTINCT ON (m) month AS m, country FROM (SELECT month, country, sum(amount) AS n, count(*) AS c FROM sales GROUP BY 1, 2) q ORDER BY 1 DESC, n DESC, c
--> KH101 sum(amount)

SELECT DISTINCT ON (month) country FROM (SELECT month, country, count(*) AS n FROM sales GROUP BY 1, 2) q ORDER BY n DESC, month
--> KH101 count(*)

SELECT country, -n AS n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY n DESC LIMIT 2
--> KH101 count(*)

SELECT region, country FROM (SELECT r.region, s.country, rank() OVER (PARTITION BY r.region ORDER BY count(*) DESC) AS place FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1, 2) q WHERE place <= 2
--> [region 3, country 4] true first 2 per region falling ~100; count(*) delta 100 in 0..100

SELECT DISTINCT ON (r.region) r.region, r.name FROM regions r JOIN sales s ON r.name = s.country GROUP BY r.region, r.name ORDER BY r.region, count(*) FILTER (WHERE gift) DESC
--> [region 3, country 4] true first 1 per region falling ~100; count(*) FILTER (WHERE gift) delta 100 in 0..100

SELECT r.region, s.country, rank() OVER (PARTITION BY r.region ORDER BY count(*)) AS place FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1, 2
--> KH106 r.region

SELECT r.region, s.country, rank() OVER (PARTITION BY r.region ORDER BY sum(amount) DESC) AS place FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1, 2
--> KH106 r.region
