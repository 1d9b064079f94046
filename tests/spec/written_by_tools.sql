-- # Statements as BI tools and drivers write them: spellings of derived keys, strings, truth values, and what is near.

SELECT CAST(date_trunc('month', s.invoice_date) AS date) AS m FROM sales s WHERE date_trunc('month', s.invoice_date)::date >= '2011-03-01' GROUP BY 1 HAVING count(*) > 400 ORDER BY CAST(date_trunc('month', s.invoice_date) AS date)
--> [month 10] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT DATE_TRUNC('MONTH', CAST("sales"."invoice_date" AS timestamp without time zone)) FROM public."sales" GROUP BY DATE_TRUNC('MONTH', CAST("sales"."invoice_date" AS timestamp without time zone)) HAVING count(*) > 400
--> [month 13] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT (date_trunc('month', (invoice_date)::date))::date FROM sales GROUP BY (date_trunc('month', (invoice_date)::date))::date HAVING count(*) > 400
--> [month 13] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT date_trunc('day', arrived)::date AS d FROM visits GROUP BY date_trunc('day', arrived)::date HAVING count(*) > 40
--> [day 10] f0 > 40 ~4; count(*) delta 1

SELECT extract(hour FROM arrived::timestamp) AS h FROM visits GROUP BY 1 HAVING count(*) > 40
--> [hour 24] f0 > 40 ~4; count(*) delta 1

SELECT extract(hour FROM arrived::date) AS h FROM visits GROUP BY 1 HAVING count(*) > 40
--> KH202 arrived::date)

SELECT date_trunc('quarter', invoice_date)::date AS q FROM sales GROUP BY 1 HAVING count(*) > 400
--> [CAST(date_trunc('QUARTER', CAST(month AS TIMESTAMP)) AS DATE) 5] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT date_trunc('month', invoice_date, 'UTC')::date AS q FROM sales GROUP BY 1 HAVING count(*) > 400
--> KH202 date_trunc('month',

SELECT to_char(invoice_date, 'YYYY-MM') AS m FROM sales GROUP BY 1 HAVING count(*) > 400
--> [month 13] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT to_char(month, 'YYYY-MM') AS m FROM sales GROUP BY month HAVING count(*) > 400
--> [month 13] f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT ward FROM visits WHERE disease = E'Asthma \x41\u00e9\'s \101\tb' GROUP BY ward HAVING count(1) > 40
--> [ward 3] where "disease" = 'Asthma Aé''s A	b' f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE disease LIKE E'50\\%%' GROUP BY ward HAVING count(true) > 40
--> [ward 3] where "disease" LIKE '50\%%' f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE disease = E'\ud800' GROUP BY ward HAVING count(*) > 40
--> KH100 E'\ud800'

SELECT ward FROM visits WHERE disease = E'a\000' GROUP BY ward HAVING count(*) > 40
--> KH100 E'a\000'

SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 40 AND NOT sum(age) > 900) IS NOT TRUE
--> KH206 sum(age)

SELECT ward FROM visits GROUP BY ward HAVING NOT ((count(*) > 40) IS FALSE)
--> [ward 3] f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits GROUP BY ward HAVING max(age) - min(age) > 40
--> KH204 max(age)

SELECT ward FROM visits GROUP BY ward HAVING max(age) > min(age) + 40
--> KH208 max(age)

SELECT ward FROM visits GROUP BY ward HAVING median(age) + 1 > 40
--> KH204 median(age)

SELECT ward FROM visits GROUP BY ward HAVING string_agg(disease, ',') > 'a'
--> KH204 disease,

SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 OR harmonic_mean(age) > 50
--> KH204 harmonic_mean(age)
