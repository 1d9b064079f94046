-- # Row conditions as tools write them: functions of one column, constants of every spelling, and what is near.

SELECT country FROM sales WHERE ('France'::text IS NULL OR country = 'France') GROUP BY country HAVING count(*) > 400
--> [country 1] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE (NULL::text IS NULL OR country = NULL) GROUP BY country HAVING count(*) > 400
--> [country 4] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE country = coalesce(nullif('', ''), country) GROUP BY country HAVING count(*) > 400
--> [country 4] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE 'all' IN ('all', 'some') AND quantity > 3 GROUP BY country HAVING count(*) > 400
--> [country 4] where "quantity" > 3 f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE invoice_date BETWEEN '2011-01-01T00:00:00Z' AND '2011-06-30T23:59:59.999Z' GROUP BY country HAVING count(*) > 400
--> [country 4] where ("invoice_date" <= timestamp '2011-06-30 23:59:59.999000' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE invoice_date >= TO_TIMESTAMP('2011-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY country HAVING count(*) > 400
--> [country 4] where "invoice_date" >= timestamp '2011-01-01 00:00:00' f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE invoice_date >= TO_TIMESTAMP('2011-1-1', 'YYYY-MM-DD') GROUP BY country HAVING count(*) > 400
--> KH212 TO_TIMESTAMP('2011-1-1',

SELECT country FROM sales WHERE month >= TO_DATE('2011-01-01', 'YYYY-MM-DD') AND month < make_date(2011, 4, 1) GROUP BY country HAVING count(*) > 400
--> [country 4] where ("month" < date '2011-04-01' AND "month" >= date '2011-01-01') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE invoice_date >= '2011-01-01T00:00:00+02:00'::timestamptz GROUP BY country HAVING count(*) > 400
--> [country 4] where "invoice_date" >= timestamp '2010-12-31 22:00:00' f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE invoice_date IN ('2011-01-01', timestamptz '2011-01-02 00:00:00+02') GROUP BY country HAVING count(*) > 400
--> [country 4] where "invoice_date" IN (timestamp '2011-01-01 00:00:00', timestamp '2011-01-01 22:00:00') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE invoice_date >= '20110101' GROUP BY country HAVING count(*) > 400
--> [country 4] where "invoice_date" >= timestamp '2011-01-01 00:00:00' f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE CAST(stock_code AS TEXT) = 'S1' AND CAST(quantity AS bigint) > 3 GROUP BY country HAVING count(*) > 400
--> [country 4] where ("quantity" > 3 AND "stock_code" = 'S1') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT ward FROM visits WHERE visit_id::int > 3 GROUP BY ward HAVING count(*) > 400
--> KH205 visit_id::int

SELECT country FROM sales WHERE invoice_date::date > '2011-06-01' GROUP BY country HAVING count(*) > 400
--> [country 4] where "invoice_date" >= timestamp '2011-06-02 00:00:00' f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE extract(year FROM invoice_date) = 2011 GROUP BY country HAVING count(*) > 400
--> [country 4] where ("invoice_date" < timestamp '2012-01-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE extract(month FROM invoice_date) = 6 GROUP BY country HAVING count(*) > 400
--> KH205 invoice_date)

SELECT country FROM sales WHERE date_trunc('year', invoice_date) = '2011-01-01' GROUP BY country HAVING count(*) > 400
--> [country 4] where ("invoice_date" < timestamp '2012-01-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE date_trunc('year', invoice_date) = '2011-01-02' GROUP BY country HAVING count(*) > 400
--> [country 4] where false f0 > 400 ~40; count(*) delta 1 in 0..0

SELECT country FROM sales WHERE to_char(invoice_date, 'YYYY-MM') = '2011-06' GROUP BY country HAVING count(*) > 400
--> KH205 to_char(invoice_date,

SELECT country FROM sales WHERE lower(stock_code) LIKE '%s1%' GROUP BY country HAVING count(*) > 400
--> [country 4] where ("stock_code" LIKE '%S1%' OR "stock_code" LIKE '%s1%') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE lower(stock_code) LIKE '%S1%' GROUP BY country HAVING count(*) > 400
--> [country 4] where false f0 > 400 ~40; count(*) delta 1 in 0..0

SELECT ward FROM visits WHERE disease ILIKE 'kidney%' GROUP BY ward HAVING count(*) > 400
--> KH205 disease

SELECT ward FROM visits WHERE upper(disease) = 'FLU' GROUP BY ward HAVING count(*) > 400
--> KH205 upper(disease)

SELECT ward FROM visits WHERE disease ~ '^flu' GROUP BY ward HAVING count(*) > 400
--> KH205 disease

SELECT country FROM sales WHERE starts_with(stock_code, 'S_') OR left(stock_code, 2) = 'P1' GROUP BY country HAVING count(*) > 400
--> [country 4] where ("stock_code" LIKE 'P1%' OR "stock_code" LIKE 'S\_%') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE stock_code LIKE 'S1' || '%' OR stock_code LIKE '50/%' ESCAPE '/' GROUP BY country HAVING count(*) > 400
--> [country 4] where ("stock_code" LIKE '50\%' OR "stock_code" LIKE 'S1%') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT ward FROM visits WHERE coalesce(disease, 'none') = 'none' AND coalesce(insured, false) GROUP BY ward HAVING count(*) > 400
--> [ward 3] where ("insured" = true AND ("disease" = 'none' OR "disease" IS NULL)) f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE age + 5 > 70 AND 2 * age < 181 GROUP BY ward HAVING count(*) > 400
--> [ward 3] where ("age" < 91 AND "age" > 65) f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE age % 2 = 0 GROUP BY ward HAVING count(*) > 400
--> KH205 age

SELECT ward FROM visits WHERE cost / 100 > 10 GROUP BY ward HAVING count(*) > 400
--> KH205 cost

SELECT ward FROM visits WHERE (ward, disease) IN (('A', 'flu'), ('B', 'cold')) GROUP BY ward HAVING count(*) > 400
--> [ward 3] where (("disease" = 'cold' AND "ward" = 'B') OR ("disease" = 'flu' AND "ward" = 'A')) f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE (ward, disease) IN (('A', 'flu', 1)) GROUP BY ward HAVING count(*) > 400
--> KH212 ward,

SELECT ward FROM visits WHERE age BETWEEN SYMMETRIC 60 AND 40 GROUP BY ward HAVING count(*) > 400
--> [ward 3] where (("age" <= 40 AND "age" >= 60) OR ("age" <= 60 AND "age" >= 40)) f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE disease = ANY ('{flu,"common cold",NULL}') GROUP BY ward HAVING count(*) > 400
--> [ward 3] where "disease" IN ('common cold', 'flu') f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE disease <> ALL (ARRAY['flu', 'cold']) AND age > ANY ('{60,70}'::int[]) GROUP BY ward HAVING count(*) > 400
--> [ward 3] where (("age" > 60 OR "age" > 70) AND NOT ("disease" IN ('cold', 'flu'))) f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE disease = ANY ('{{flu},{cold}}') GROUP BY ward HAVING count(*) > 400
--> KH212 '{{flu},{cold}}')

SELECT ward FROM visits WHERE CASE WHEN insured THEN age > 60 ELSE age > 70 END GROUP BY ward HAVING count(*) > 400
--> [ward 3] where (("age" > 60 AND "insured" = true) OR ("age" > 70 AND ("insured" = false OR "insured" IS NULL))) f0 > 400 ~40; count(*) delta 1

SELECT country FROM sales GROUP BY country HAVING count(DISTINCT CASE WHEN gift THEN (customer_id, month) END) > 200
--> [country 4] f0 > 200 ~20; count(DISTINCT customer_id, month) FILTER (WHERE gift) delta 1

SELECT country, month FROM sales GROUP BY country, month HAVING count(DISTINCT CASE WHEN gift THEN customer_id ELSE NULL END) FILTER (WHERE quantity > 3) > 200
--> [country 4, month 13] f0 > 200 ~20; count(DISTINCT customer_id) FILTER (WHERE (quantity > 3) AND (gift)) delta 1

SELECT country FROM sales GROUP BY country HAVING count(*) > 400 AND count(*) IS NOT NULL
--> [country 4] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country HAVING count(*) > 400 ORDER BY 1 FOR READ ONLY
--> KH100 FOR

SELECT country FROM sales GROUP BY country HAVING count(*) > 8_000
--> KH100 _000

SELECT country FROM sales WHERE quantity = 'many' GROUP BY country HAVING count(*) > 400
--> KH212 'many'
