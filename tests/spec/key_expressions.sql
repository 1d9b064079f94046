-- # Keys that are expressions of declared keys.
SELECT CAST(country AS text) FROM sales GROUP BY 1 HAVING count(*) > 2000
--> [country 4] f0 > 2000 ~200; count(*) delta 100 in 0..100

SELECT CAST("sales"."country" AS TEXT) AS "country" FROM "public"."sales" "sales" GROUP BY 1 HAVING count(*) > 2000
--> [country 4] f0 > 2000 ~200; count(*) delta 100 in 0..100

SELECT coalesce(country, 'Unknown') AS country FROM sales GROUP BY 1 HAVING count(*) > 8000
--> [country 4] f0 > 8000 ~800; count(*) delta 100 in 0..100

SELECT upper(country) FROM sales GROUP BY upper(country) HAVING count(*) > 2000
--> [country 4] f0 > 2000 ~200; count(*) delta 100 in 0..100

SELECT CASE WHEN hour < 12 THEN 'am' ELSE 'pm' END AS half FROM visits GROUP BY 1 HAVING count(*) > 1000 ORDER BY 1
--> [CASE WHEN hour < 12 THEN 'am' ELSE 'pm' END 2] f0 > 1000 ~100; count(*) delta 1

SELECT CASE WHEN hour < 8 THEN 'night' WHEN hour < 16 THEN 'day' ELSE 'evening' END AS shift, ward FROM visits GROUP BY shift, ward HAVING count(*) > 1000 ORDER BY 1, 2
--> [CASE WHEN hour < 8 THEN 'night' WHEN hour < 16 THEN 'day' ELSE 'evening' END 3, ward 3] f0 > 1000 ~100; count(*) delta 1

SELECT CASE WHEN hour < 12 THEN 'am' END AS half FROM visits WHERE hour < 4 GROUP BY half HAVING count(*) > 1000
--> [CASE WHEN hour < 12 THEN 'am' END 1] where "hour" < 4 f0 > 1000 ~100; count(*) delta 1

SELECT (CASE WHEN ("sales"."country" IN ('France', 'Germany')) THEN 'EU' ELSE "sales"."country" END) AS "Country (group)" FROM "public"."sales" "sales" GROUP BY 1 HAVING COUNT(1) > 8000
--> [CASE WHEN (country IN ('France', 'Germany')) THEN 'EU' ELSE country END 3] f0 > 8000 ~800; count(*) delta 100 in 0..100

SELECT hour / 6, hour % 2 FROM visits GROUP BY hour / 6, hour % 2 HAVING count(*) > 10
--> [hour / 6, hour % 2 8] f0 > 10 ~1; count(*) delta 1

SELECT ward || '-' || hour FROM visits GROUP BY 1 HAVING count(*) > 10
--> [hour 24, ward 3] f0 > 10 ~1; count(*) delta 1

SELECT extract(year FROM month) AS y, extract(month FROM month) AS m FROM sales GROUP BY 1, 2 HAVING count(*) > 2000
--> [month 13] f0 > 2000 ~200; count(*) delta 100 in 0..100

SELECT CAST(EXTRACT(YEAR FROM "sales"."invoice_date") AS INTEGER) AS "yr:invoice_date:ok" FROM "public"."sales" "sales" GROUP BY 1 HAVING (COUNT(1) > 2000)
--> [CAST(EXTRACT(YEAR FROM CAST(month AS TIMESTAMP)) AS INT) 2] f0 > 2000 ~200; count(*) delta 100 in 0..100

SELECT DATE_TRUNC('quarter', "public"."sales"."invoice_date") AS "q" FROM "public"."sales" GROUP BY DATE_TRUNC('quarter', "public"."sales"."invoice_date") HAVING COUNT(*) > 6000 ORDER BY 1
--> [date_trunc('QUARTER', CAST(month AS TIMESTAMP)) 5] f0 > 6000 ~600; count(*) delta 100 in 0..100

SELECT to_char(month, 'YYYY-MM') AS m FROM sales GROUP BY 1 HAVING count(*) > 2000
--> [month 13] f0 > 2000 ~200; count(*) delta 100 in 0..100

SELECT to_char(invoice_date, 'YYYY') AS m FROM sales GROUP BY 1 HAVING count(*) > 2000
--> [to_char(CAST(month AS TIMESTAMP), 'YYYY') 2] f0 > 2000 ~200; count(*) delta 100 in 0..100

SELECT date_trunc('month'::varchar, invoice_date) FROM sales GROUP BY 1 HAVING count(*) > 2000
--> [month 13] f0 > 2000 ~200; count(*) delta 100 in 0..100

SELECT date_trunc('month', invoice_date::timestamp(6)) FROM sales GROUP BY 1 HAVING count(*) > 2000
--> [month 13] f0 > 2000 ~200; count(*) delta 100 in 0..100

SELECT date_trunc('month', invoice_date::timestamp(0)) FROM sales GROUP BY 1 HAVING count(*) > 2000
--> KH202 date_trunc('month',

SELECT EXTRACT(HOUR FROM arrived)::int AS h FROM visits GROUP BY 1 HAVING count(*) > 400 ORDER BY 1
--> [hour 24] f0 > 400 ~40; count(*) delta 1

SELECT hour FROM visits GROUP BY hour / 6 HAVING count(*) > 10
--> KH101 hour

SELECT CASE WHEN ward < 'B' THEN 1 END FROM visits GROUP BY 1 HAVING count(*) > 10
--> KH202 ward

SELECT CASE WHEN hour < 6 THEN ward END FROM visits GROUP BY 1 HAVING count(*) > 10
--> [CASE WHEN hour < 6 THEN ward END 4] f0 > 10 ~1; count(*) delta 1

SELECT hour / 0 FROM visits GROUP BY 1 HAVING count(*) > 10
--> KH202 hour

SELECT day::date, hour / 12 FROM visits GROUP BY 1, 2 HAVING count(*) > 10 AND hour / 12 = 0
--> KH207 hour

SELECT country, month FROM sales WHERE gift GROUP BY ROLLUP (country, month) HAVING count(*) > 5
--> [country 4, month 13] where "gift" = true f0 > 5 ~0; count(*) delta 100 in 0..100 & [country 4] where "gift" = true f0 > 5 ~0; count(*) delta 100 in 0..100 & [] where "gift" = true f0 > 5 ~0; count(*) delta 100 in 0..100

SELECT country, month FROM sales GROUP BY country, CUBE (month) HAVING count(*) > 5
--> [country 4, month 13] f0 > 5 ~0; count(*) delta 100 in 0..100 & [country 4] f0 > 5 ~0; count(*) delta 100 in 0..100

SELECT country, month FROM sales GROUP BY GROUPING SETS ((country, month), (country), (month), ()) HAVING count(*) > 5 AND sum(amount) > 7
--> [country 4, month 13] (f0 > 5 ~0 and f1 > 700 ~70); count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000 & [country 4] (f0 > 5 ~0 and f1 > 700 ~70); count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000 & [month 13] (f0 > 5 ~0 and f1 > 700 ~70); count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000 & [] (f0 > 5 ~0 and f1 > 700 ~70); count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000

SELECT month FROM sales GROUP BY GROUPING SETS (month, ROLLUP (country)) HAVING count(*) > 5
--> [month 13] f0 > 5 ~0; count(*) delta 100 in 0..100 & [country 4] f0 > 5 ~0; count(*) delta 100 in 0..100 & [] f0 > 5 ~0; count(*) delta 100 in 0..100

SELECT country, month, grouping(country, month) AS level FROM sales GROUP BY CUBE (country, month) HAVING count(*) > 500 AND grouping(country) = 0 ORDER BY level, country
--> [country 4, month 13] f0 > 500 ~50; count(*) delta 100 in 0..100 & [country 4] f0 > 500 ~50; count(*) delta 100 in 0..100 & [month 13] false;  & [] false;

SELECT country, month FROM sales GROUP BY ROLLUP (country, month) HAVING count(*) > CASE grouping(country, month) WHEN 3 THEN 900 WHEN 1 THEN 500 ELSE 50 END
--> [country 4, month 13] f0 > 50 ~5; count(*) delta 100 in 0..100 & [country 4] f0 > 500 ~50; count(*) delta 100 in 0..100 & [] f0 > 900 ~90; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY CUBE (country) HAVING count(*) > 50 * CASE WHEN grouping(country) = 1 AND NOT 2 BETWEEN 3 AND 9 THEN 10 ELSE 0.5 END
--> [country 4] f0 > 25 ~2; count(*) delta 100 in 0..100 & [] f0 > 500 ~50; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY ROLLUP (country) HAVING count(*) / 4 > CASE WHEN NULL IS NULL THEN 7 / 2 WHEN 1 IN (2, 3) THEN 1 END
--> [country 4] f0 > 15 ~1; count(*) delta 100 in 0..100 & [] f0 > 15 ~1; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country HAVING count(*) > CASE WHEN 'a' = 'a' THEN 5 END
--> KH208 'a'

SELECT DISTINCT country FROM sales GROUP BY ROLLUP (country, month) HAVING count(*) > 500
--> [country 4, month 13] f0 > 500 ~50; count(*) delta 100 in 0..100 & [country 4] f0 > 500 ~50; count(*) delta 100 in 0..100 & [] f0 > 500 ~50; count(*) delta 100 in 0..100

SELECT country, quantity > 10 AS big FROM sales GROUP BY ROLLUP (country, quantity > 10) HAVING count(*) > 500
--> [country 4, quantity > 10 3] f0 > 500 ~50; count(*) delta 100 in 0..100 & [country 4] f0 > 500 ~50; count(*) delta 100 in 0..100 & [] f0 > 500 ~50; count(*) delta 100 in 0..100
