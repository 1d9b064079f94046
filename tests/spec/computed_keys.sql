-- # Groups computed from columns: conditions, steps and times that no key is declared for.
SELECT quantity > 10 AS several, country FROM sales GROUP BY 1, 2 HAVING count(DISTINCT customer_id) > 20
--> [quantity > 10 3, country 4] f0 > 20 ~2; count(DISTINCT customer_id) delta 1 in 0..1
SELECT NOT (quantity <= 10) FROM sales GROUP BY NOT (quantity <= 10) HAVING count(*) > 20
--> [NOT (quantity <= 10) 3] f0 > 20 ~2; count(*) delta 100 in 0..100
SELECT CASE WHEN quantity >= 100 THEN 'bulk' WHEN quantity < 0 THEN 'return' ELSE 'retail' END AS kind, month FROM sales GROUP BY 1, 2 HAVING count(*) > 1000
--> [CASE WHEN quantity >= 100 THEN 'bulk' WHEN quantity < 0 THEN 'return' ELSE 'retail' END 3, month 13] f0 > 1000 ~100; count(*) delta 100 in 0..100
SELECT floor(amount / 10) * 10 AS price_from, count(*) > 5000 AS common FROM sales GROUP BY 1
--> [floor(amount / 10) * 10 102] true show f0 > 5000 ~500; count(*) delta 100 in 0..100
SELECT width_bucket(amount, 0, 100, 5) AS price, month FROM sales GROUP BY 1, 2 HAVING sum(quantity) > 1000
--> [width_bucket(amount, 0, 100, 5) 8, month 13] f0 > 1000 ~100; sum(quantity) delta 1000 in 0..1000
SELECT invoice_date::date AS day FROM sales WHERE invoice_date >= '2011-11-01' AND invoice_date < '2011-12-01' GROUP BY 1 HAVING count(DISTINCT customer_id) > 100
--> [date(invoice_date) 30] where ("invoice_date" < timestamp '2011-12-01 00:00:00' AND "invoice_date" >= timestamp '2011-11-01 00:00:00') f0 > 100 ~10; count(DISTINCT customer_id) delta 1 in 0..1
SELECT invoice_date::date AS day FROM sales GROUP BY 1 HAVING count(*) > 100
--> [date(invoice_date) 396] f0 > 100 ~10; count(*) delta 100 in 0..100
SELECT extract(dow FROM invoice_date) AS weekday, month FROM sales GROUP BY 1, 2 HAVING count(DISTINCT customer_id) > 200
--> [extract(dow invoice_date) 7, month 13] f0 > 200 ~20; count(DISTINCT customer_id) delta 1
SELECT to_char(invoice_date, 'HH24') AS h FROM sales GROUP BY 1 HAVING count(*) > 200
--> [extract(hour FROM invoice_date) 25] f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT extract(dow FROM invoice_date) IN (0, 6) AS weekend FROM sales GROUP BY 1 HAVING count(*) > 200
--> [extract(dow FROM invoice_date) 3] f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT date_trunc('week', invoice_date) AS week FROM sales WHERE invoice_date BETWEEN '2011-01-03' AND '2011-06-26' GROUP BY week HAVING count(DISTINCT customer_id) > 150
--> [date_trunc(week invoice_date) 25] where ("invoice_date" <= timestamp '2011-06-26 00:00:00' AND "invoice_date" >= timestamp '2011-01-03 00:00:00') f0 > 150 ~15; count(DISTINCT customer_id) delta 1 in 0..1
SELECT left(country, 1) AS initial FROM sales GROUP BY 1 HAVING count(DISTINCT customer_id) > 50
--> [country 4] f0 > 50 ~5; count(DISTINCT customer_id) delta 1 in 0..1
SELECT length(country) > 7 FROM sales GROUP BY 1 HAVING count(*) > 50
--> [length(country) > 7 2] f0 > 50 ~5; count(*) delta 100 in 0..100
SELECT country LIKE '%a%' FROM sales GROUP BY 1 HAVING count(*) > 50
--> [country LIKE '%a%' 2] f0 > 50 ~5; count(*) delta 100 in 0..100
SELECT gift FROM sales GROUP BY gift HAVING count(*) > 50
--> [gift by value 3] f0 > 50 ~5; count(*) delta 100 in 0..100
SELECT coalesce(gift, false) AS gift FROM sales GROUP BY 1 HAVING count(*) > 50
--> [coalesce(gift, FALSE) 2] f0 > 50 ~5; count(*) delta 100 in 0..100
SELECT quantity FROM sales GROUP BY quantity HAVING count(*) > 50
--> [quantity by value 202] f0 > 50 ~5; count(*) delta 100 in 0..100
SELECT s.quantity / 10 AS tens, r.region FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1, 2 HAVING count(*) > 100
--> [s.quantity / 10 22, region 3] f0 > 100 ~10; count(*) delta 100 in 0..100
SELECT age / 10 * 10 AS age FROM visits GROUP BY age / 10 * 10 HAVING count(*) > 40
--> [age / 10 * 10 13] f0 > 40 ~4; count(*) delta 1
SELECT age / 10 * 10 AS age FROM visits GROUP BY 1 ORDER BY 1 LIMIT 3
--> [age / 10 * 10 13] true; 
SELECT age >= 18 AS adult, insured FROM visits GROUP BY 1, 2 HAVING avg(cost) > 100 AND count(*) > 50
--> [age >= 18 3, insured by value 3] (f0 > 0 ~1000 and f1 > 50 ~5); avg(cost) - 100 1x-200 delta 9800; count(*) delta 1
SELECT CASE WHEN disease IN ('flu', 'cold') THEN 'common' WHEN disease LIKE 'x%' THEN 'rare' ELSE 'other' END AS kind FROM visits GROUP BY 1 HAVING count(*) > 40
--> [CASE WHEN disease IN ('flu', 'cold') THEN 'common' WHEN disease LIKE 'x%' THEN 'rare' ELSE 'other' END 3] f0 > 40 ~4; count(*) delta 1
SELECT disease = 'flu' AS flu, ward FROM visits GROUP BY 1, 2 HAVING count(*) > 40
--> [disease = 'flu' 3, ward 3] f0 > 40 ~4; count(*) delta 1
SELECT disease < 'm' FROM visits GROUP BY 1 HAVING count(*) > 40
--> KH202 disease
SELECT upper(disease) FROM visits GROUP BY 1 HAVING count(*) > 40
--> KH202 upper(disease)
SELECT floor(height * 10) FROM visits GROUP BY 1 HAVING count(*) > 40
--> [floor(height * 10) 32] f0 > 40 ~4; count(*) delta 1
SELECT height * 2 FROM visits GROUP BY 1 HAVING count(*) > 40
--> KH202 height
SELECT floor(weight) FROM sales GROUP BY 1 HAVING count(*) > 40
--> KH202 weight)
SELECT floor(weight) FROM sales WHERE weight BETWEEN 0 AND 5 GROUP BY 1 HAVING count(*) > 40
--> [floor(weight) 6] where ("weight" <= 5 AND "weight" >= 0) f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT floor(cost * 1000) FROM visits GROUP BY 1 HAVING count(*) > 40
--> KH202 cost
SELECT quantity > amount FROM sales GROUP BY 1 HAVING count(*) > 40
--> [quantity > amount 3] f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT CASE WHEN quantity * amount > 500 THEN 'large' WHEN quantity < amount THEN 'single' ELSE 'small' END AS kind, country FROM sales GROUP BY 1, 2 HAVING count(*) > 40
--> [CASE WHEN "quantity * amount > 500" THEN 'large' WHEN "quantity < amount" THEN 'single' ELSE 'small' END 3, country 4] f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT lower(trim(disease)) = 'flu' AS flu FROM visits GROUP BY 1 HAVING count(*) > 40
--> [lower(trim(disease)) = 'flu' 3] f0 > 40 ~4; count(*) delta 1
SELECT s.quantity > s.amount AS odd, r.region FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1, 2 HAVING count(*) > 100
--> [s.quantity > s.amount 3, region 3] f0 > 100 ~10; count(*) delta 100 in 0..100
SELECT s.quantity > length(r.region) FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1 HAVING count(*) > 100
--> [s.quantity > length(r.region) 3] where "country" IN ('France', 'Germany', 'Norway', 'United Kingdom') f0 > 100 ~10; count(*) delta 100 in 0..100
SELECT customer_id % 10 FROM sales GROUP BY 1 HAVING count(*) > 40
--> KH202 customer_id
SELECT customer_id FROM sales WHERE customer_id BETWEEN 1 AND 10 GROUP BY 1 HAVING count(*) > 40
--> KH202 customer_id
SELECT random() > 0.5 FROM sales GROUP BY 1 HAVING count(*) > 40
--> KH202 random()
SELECT quantity > 10 FROM sales GROUP BY quantity > 20 HAVING count(*) > 40
--> KH101 quantity
SELECT quantity FROM sales GROUP BY quantity > 20 HAVING count(*) > 40
--> KH101 quantity
SELECT quantity > 20 AS many FROM sales GROUP BY 1 ORDER BY count(*) DESC LIMIT 1
--> [quantity > 20 3] true first 1 falling ~830 priced; count(*) delta 100 in 0..100
SELECT quantity > 20 AS many FROM sales GROUP BY 1 HAVING count(*) > 500 UNION SELECT quantity > 20 FROM sales GROUP BY 1 HAVING sum(amount) > 1000
--> [quantity > 20 3] (f0 > 500 ~50 or f1 > 100000 ~10000); count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000
SELECT many FROM (SELECT quantity > 20 AS many FROM sales GROUP BY 1 HAVING count(*) > 500) q WHERE many
--> [quantity > 20 3] f0 > 500 ~50; count(*) delta 100 in 0..100
SELECT q.kind, count(*) FROM (SELECT country, quantity / 50 AS kind FROM sales GROUP BY 1, 2 HAVING count(*) > 500) q GROUP BY 1
--> [country 4, quantity / 50 6] f0 > 500 ~50; count(*) delta 100 in 0..100
SELECT kind FROM (SELECT *, CASE WHEN quantity > 20 THEN 'bulk' ELSE 'few' END AS kind FROM sales) s GROUP BY kind HAVING count(*) > 500
--> [CASE WHEN quantity > 20 THEN 'bulk' ELSE 'few' END 2] f0 > 500 ~50; count(*) delta 100 in 0..100
SELECT upper(country) || ' ' || to_char(month, 'YYYY') AS label FROM sales GROUP BY 1 HAVING sum(amount) > 50000
--> [upper(country) || ' ' || to_char(month, 'YYYY') 8] f0 > 5000000 ~500000; sum(amount) delta 150000 in -100000..150000
SELECT CASE WHEN quantity > 10 AND month < '2011-06-01' THEN 'a' ELSE 'b' END AS k, country FROM sales GROUP BY 1, 2 HAVING count(*) > 500
--> [CASE WHEN quantity > 10 AND month < '2011-06-01' THEN 'a' ELSE 'b' END together 2, country 4] f0 > 500 ~50; count(*) delta 100 in 0..100
SELECT CASE WHEN quantity > 10 AND month < '2011-06-01' THEN 'a' ELSE 'b' END AS k, month FROM sales GROUP BY 1, 2 HAVING count(*) > 500
--> [CASE WHEN quantity > 10 AND month < '2011-06-01' THEN 'a' ELSE 'b' END, month 19] f0 > 500 ~50; count(*) delta 100 in 0..100
SELECT lower(r.region) || country FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1 HAVING count(*) > 40
--> [country 4] f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT width_bucket(amount, 0, 100, 5000) FROM sales GROUP BY 1 HAVING count(*) > 40
--> [width_bucket(amount, 0, 100, 5000) 5003] f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT width_bucket(amount, 0, 100, 10000000) FROM sales GROUP BY 1 HAVING count(*) > 40
--> KH202 width_bucket(amount,
SELECT width_bucket(amount, ARRAY[5, 10, 50]::numeric[]) FROM sales GROUP BY 1 HAVING count(*) > 40
--> [width_bucket(amount, CAST(array[5, 10, 50] AS DECIMAL[])) 5] f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT width_bucket(amount, '{5,10,50}'::numeric[]) FROM sales GROUP BY 1 HAVING count(*) > 40
--> KH202 width_bucket(amount,
SELECT quantity * 1000000000 FROM sales GROUP BY 1 HAVING count(*) > 40
--> KH202 quantity
SELECT CASE WHEN quantity > 5 AND country = 'France' THEN 'large' ELSE 'other' END AS kind, country FROM sales GROUP BY 1, 2 HAVING count(*) > 40
--> [CASE WHEN quantity > 5 AND country = 'France' THEN 'large' ELSE 'other' END, country 5] f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT to_char(invoice_date, 'Dy') AS weekday FROM sales GROUP BY 1 HAVING count(*) > 200
--> [to_char(CAST("date(invoice_date)" AS TIMESTAMP), 'Dy') 7] f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT CASE WHEN quantity > amount THEN 1 ELSE 0 END = 1 AS odd FROM sales GROUP BY 1 HAVING count(*) > 200
--> [quantity > amount 2] f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT extract(isodow FROM invoice_date) AS d FROM sales GROUP BY 1 HAVING count(*) > 200
--> [extract(isodow FROM invoice_date) 8] f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT extract(isodow FROM invoice_date) AS d FROM sales WHERE invoice_date >= '2011-01-01' GROUP BY 1 HAVING count(*) > 200
--> [extract(isodow invoice_date) 7] where "invoice_date" >= timestamp '2011-01-01 00:00:00' f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT extract(year FROM age(invoice_date)) > 2 AS old FROM sales GROUP BY 1 HAVING count(*) > 200
--> KH202 age(invoice_date))
SELECT invoice_date < current_date - 30 AS old FROM sales GROUP BY 1 HAVING count(*) > 200
--> KH202 invoice_date
SELECT quantity > 10 AS several, coalesce(month::text, 'all') AS month, grouping(quantity > 10) AS level FROM sales GROUP BY CUBE (several, month) HAVING count(*) > 500 AND grouping(month) = 0 ORDER BY grouping(quantity > 10)
--> [quantity > 10 3, month 13] f0 > 500 ~50; count(*) delta 100 in 0..100 & [quantity > 10 3] false;  & [month 13] f0 > 500 ~50; count(*) delta 100 in 0..100 & [] false;
SELECT CASE WHEN quantity >= 24 THEN 'bulk' ELSE 'few' END AS size, width_bucket(amount, 0, 100, 4) AS price FROM sales GROUP BY GROUPING SETS (size, 2) HAVING count(*) > 500 ORDER BY width_bucket(amount, 0, 100, 4)
--> [CASE WHEN quantity >= 24 THEN 'bulk' ELSE 'few' END 2] f0 > 500 ~50; count(*) delta 100 in 0..100 & [width_bucket(amount, 0, 100, 4) 7] f0 > 500 ~50; count(*) delta 100 in 0..100
SELECT quantity > 10 AS several FROM sales GROUP BY 1 HAVING count(*) > 500 EXCEPT SELECT quantity > 10 FROM sales GROUP BY quantity > 10 HAVING sum(amount) > 20000
--> [quantity > 10 3] (f0 > 500 ~50 and f1 <= 2000000 ~200000); count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000
SELECT country FROM sales GROUP BY country HAVING sum(amount) > 20000 EXCEPT SELECT country FROM sales GROUP BY ROLLUP (country) HAVING count(*) > 500
--> [country 4] f0 > 2000000 ~200000; sum(amount) delta 150000 in -100000..150000 & [country 4] f0 > 500 ~50; count(*) delta 100 in 0..100 & [] f0 > 500 ~50; count(*) delta 100 in 0..100
SELECT to_char(invoice_date, 'HH24:MI') AS h FROM sales GROUP BY 1 HAVING count(*) > 200
--> KH202 to_char(invoice_date,
SELECT date_bin('6 hours', invoice_date, '2011-01-01') AS b FROM sales WHERE invoice_date >= '2011-01-01' AND invoice_date < '2011-02-01' GROUP BY 1 HAVING count(*) > 200
--> [date_bin('6 hours', invoice_date, 2011-01-01) 124] where ("invoice_date" < timestamp '2011-02-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT date_bin('1 month', invoice_date, '2011-01-01') AS b FROM sales WHERE invoice_date >= '2011-01-01' AND invoice_date < '2011-02-01' GROUP BY 1 HAVING count(*) > 200
--> KH202 date_bin('1
SELECT (invoice_date - interval '6 hours')::date AS shift_day FROM sales WHERE invoice_date >= '2011-01-01' AND invoice_date < '2011-02-01' GROUP BY 1 HAVING count(*) > 200
--> [CAST((invoice_date - INTERVAL '6 HOURS') AS DATE) 32] where ("invoice_date" < timestamp '2011-02-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT to_char(invoice_date, 'IYYY-IW') AS week FROM sales WHERE invoice_date >= '2011-01-03' AND invoice_date < '2011-01-31' GROUP BY 1 HAVING count(*) > 200
--> [date_trunc(week invoice_date) 4] where ("invoice_date" < timestamp '2011-01-31 00:00:00' AND "invoice_date" >= timestamp '2011-01-03 00:00:00') f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT floor(amount * quantity / 1000) AS thousands, stock_code ILIKE '%kit%' AS kit FROM sales GROUP BY 1, 2 HAVING count(*) > 40
--> [amount * quantity 102, stock_code ILIKE '%kit%' 3] f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT quantity - quantity % 10 AS tens FROM sales GROUP BY 1 HAVING count(*) > 40
--> [quantity - quantity % 10 22] f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT CASE WHEN stock_code LIKE '%X' THEN 'x' WHEN stock_code LIKE '%KIT%' THEN 'kit' END AS kind FROM sales GROUP BY 1 HAVING count(*) > 40
--> [CASE WHEN "stock_code LIKE '%X'" THEN 'x' WHEN "stock_code LIKE '%KIT%'" THEN 'kit' END 3] f0 > 40 ~4; count(*) delta 100 in 0..100
SELECT DISTINCT ON (several) quantity > 10 AS several, country FROM sales GROUP BY several, country ORDER BY several, sum(amount) DESC
--> [quantity > 10 3, country 4] true first 1 per quantity > 10 falling ~1400000 signed priced; sum(amount) delta 150000 in -100000..150000
SELECT country FROM (SELECT country, quantity > 10 AS several, row_number() OVER (PARTITION BY quantity > 10 ORDER BY count(*) DESC) AS place FROM sales GROUP BY 1, 2) q WHERE several AND place <= 2
--> [country 4, quantity > 10 3] true first 2 per quantity > 10 falling ~830 priced; count(*) delta 100 in 0..100
SELECT country, rank() OVER (PARTITION BY quantity > 10, quantity > 100 ORDER BY count(*) DESC) <= 2 FROM sales GROUP BY quantity > 10, country, quantity > 100
--> [quantity > 10, quantity > 100 4, country 4] true first 2 per quantity > 10, quantity > 100 falling ~830 priced of all; count(*) delta 100 in 0..100
SELECT country, rank() OVER (PARTITION BY quantity > 10 ORDER BY count(*) DESC) <= 2 FROM sales GROUP BY quantity > 10, country, quantity > 100
--> KH106 quantity
SELECT extract(minute FROM invoice_date) AS m FROM sales GROUP BY 1 HAVING count(*) > 200
--> [extract(minute FROM invoice_date) 61] f0 > 200 ~20; count(*) delta 100 in 0..100
SELECT (invoice_date::date - date '2011-01-01') / 7 AS week FROM sales WHERE invoice_date::date - date '2011-01-01' BETWEEN 0 AND 34 GROUP BY 1 HAVING count(*) > 200
--> [CAST(invoice_date AS DATE) - CAST('2011-01-01' AS DATE) 5] where ("(floor(invoice_date, 86400000000) + -14975)" <= 34 AND "(floor(invoice_date, 86400000000) + -14975)" >= 0) f0 > 200 ~20; count(*) delta 100 in 0..100

-- # WHERE restricts the groups by every column that a key is made of.

SELECT date_trunc('month', invoice_date) FROM sales WHERE invoice_date >= '2011-06-01' AND invoice_date < '2011-09-01' GROUP BY 1 HAVING count(*) < 100
--> [month 3] where ("invoice_date" < timestamp '2011-09-01 00:00:00' AND "invoice_date" >= timestamp '2011-06-01 00:00:00') f0 <= 99 ~10; count(*) delta 100 in 0..100

SELECT month FROM sales WHERE invoice_date > '2011-06-30 23:59' AND extract(dow FROM invoice_date) = 5 AND invoice_date < '2011-07-02' GROUP BY 1 HAVING count(*) < 100
--> [month 2] where ("invoice_date" < timestamp '2011-07-02 00:00:00' AND "invoice_date" > timestamp '2011-06-30 23:59:00' AND "rest(((floor(invoice_date, 86400000000) + 4) - (floor((floor(invoice_date, 86400000000) + 4), 7) * 7)) numeric.0)" = 5) f0 <= 99 ~10; count(*) delta 100 in 0..100

SELECT date_trunc('quarter', invoice_date) FROM sales WHERE invoice_date >= '2011-06-01' AND invoice_date < '2011-08-15' GROUP BY 1 HAVING count(*) < 100
--> [date_trunc('QUARTER', CAST(month AS TIMESTAMP)) 2] where ("invoice_date" < timestamp '2011-08-15 00:00:00' AND "invoice_date" >= timestamp '2011-06-01 00:00:00') f0 <= 99 ~10; count(*) delta 100 in 0..100

SELECT extract(month FROM invoice_date) FROM sales WHERE invoice_date >= '2011-06-01' AND invoice_date < '2011-08-15' GROUP BY 1 HAVING count(*) < 100
--> [EXTRACT(MONTH FROM CAST(month AS TIMESTAMP)) 3] where ("invoice_date" < timestamp '2011-08-15 00:00:00' AND "invoice_date" >= timestamp '2011-06-01 00:00:00') f0 <= 99 ~10; count(*) delta 100 in 0..100

SELECT month FROM sales WHERE invoice_date < '2011-03-01' OR quantity > 5 GROUP BY 1 HAVING count(*) < 100
--> [month 13] where ("invoice_date" < timestamp '2011-03-01 00:00:00' OR "quantity" > 5) f0 <= 99 ~10; count(*) delta 100 in 0..100

SELECT month FROM sales WHERE (invoice_date < '2011-03-01' AND quantity > 5) OR invoice_date > '2011-11-03' GROUP BY 1 HAVING count(*) < 100
--> [month 5] where ("invoice_date" > timestamp '2011-11-03 00:00:00' OR ("invoice_date" < timestamp '2011-03-01 00:00:00' AND "quantity" > 5)) f0 <= 99 ~10; count(*) delta 100 in 0..100

SELECT left(country, 1) FROM sales WHERE country LIKE 'F%' OR country = 'Spain' GROUP BY 1 HAVING count(*) < 100
--> [country 1] f0 <= 99 ~10; count(*) delta 100 in 0..100

SELECT quantity > 10 FROM sales WHERE quantity > 20 GROUP BY 1 HAVING count(*) < 100
--> [quantity > 10 1] where "quantity" > 20 f0 <= 99 ~10; count(*) delta 100 in 0..100

SELECT month FROM sales WHERE invoice_date < '2011-03-01' AND invoice_date > '2011-04-01' GROUP BY 1 HAVING count(*) < 100
--> [month 0] where ("invoice_date" < timestamp '2011-03-01 00:00:00' AND "invoice_date" > timestamp '2011-04-01 00:00:00') f0 <= 99 ~10; count(*) delta 1 in 0..0

SELECT month FROM sales WHERE invoice_date < '2011-03-01' GROUP BY 1 HAVING count(*) < 100 UNION SELECT month FROM sales WHERE invoice_date >= '2011-11-01' GROUP BY 1 HAVING count(*) < 10
--> [month 3] where "invoice_date" < timestamp '2011-03-01 00:00:00' f0 <= 99 ~10; count(*) delta 100 in 0..100 & [month 2] where "invoice_date" >= timestamp '2011-11-01 00:00:00' f0 <= 9 ~1; count(*) delta 100 in 0..100

SELECT month FROM sales WHERE invoice_date < '2011-03-01' GROUP BY 1 HAVING count(*) < 100 INTERSECT SELECT month FROM sales WHERE invoice_date >= '2011-02-01' GROUP BY 1 HAVING count(*) < 10
--> [month 1] (f0 <= 99 ~10 and f1 <= 9 ~1); count(*) FILTER (WHERE invoice_date < '2011-03-01') delta 100 in 0..100; count(*) FILTER (WHERE invoice_date >= '2011-02-01') delta 100 in 0..100

SELECT month FROM (SELECT customer_id, month, count(*) AS n FROM sales WHERE invoice_date < '2011-03-01' GROUP BY 1, 2) v WHERE n > 3 GROUP BY month HAVING count(*) > 20
--> [month 3] where "total rows|1 *^0 [true]|sensitivity=100|unit_range=0..100 steps 1 where " > 3 f0 > 20 ~2; count(*) delta 1
SELECT upper(trim(disease)) AS name FROM visits WHERE upper(trim(disease)) IN ('FLU', 'COLD', 'GOUT') GROUP BY 1 HAVING count(*) > 40
--> [CASE WHEN "upper(trim(disease)) = 'COLD'" THEN 'COLD' WHEN "upper(trim(disease)) = 'FLU'" THEN 'FLU' ELSE 'GOUT' END 3] where "upper(trim(disease))" IN ('COLD', 'FLU', 'GOUT') f0 > 40 ~4; count(*) delta 1
SELECT replace(disease, '-', '') FROM visits WHERE replace(disease, '-', '') = 'flu' OR replace(disease, '-', '') = 'cold' GROUP BY replace(disease, '-', '') HAVING count(*) > 40
--> [replace(disease, '-', '') = 'cold' 2] where ("replace(disease, '-', '')" = 'cold' OR "replace(disease, '-', '')" = 'flu') f0 > 40 ~4; count(*) delta 1
SELECT CASE lower(disease) WHEN 'flu' THEN 'flu' WHEN 'cold' THEN 'flu' ELSE 'other' END AS kind, ward FROM visits GROUP BY kind, ward HAVING count(*) > 40
--> [CASE WHEN (lower(disease)) = ('flu') THEN 'flu' WHEN (lower(disease)) = ('cold') THEN 'flu' ELSE 'other' END 2, ward 3] f0 > 40 ~4; count(*) delta 1
SELECT date_trunc('month', arrived AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin') FROM visits WHERE arrived >= '2026-01-01' AND arrived < '2026-07-01' GROUP BY 1 HAVING count(*) > 40
--> KH202 date_trunc('month',

SELECT disease ~ '^[0-9]+$' AS is_code FROM visits GROUP BY 1 HAVING count(*) > 40
--> [disease ~ '^[0-9]+$' 3] f0 > 40 ~4; count(*) delta 1

SELECT disease::int >= 400 AS failed FROM visits GROUP BY 1 HAVING count(*) > 40
--> [CAST(disease AS INT) >= 400 3] f0 > 40 ~4; count(*) delta 1

SELECT CASE WHEN disease !~ '^[A-Z]' THEN 'small' ELSE 'capital' END AS kind, ward FROM visits GROUP BY kind, ward HAVING count(*) > 40
--> [NOT disease ~ '^[A-Z]' 2, ward 3] f0 > 40 ~4; count(*) delta 1
