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
--> [country 4] where "part(month invoice_date)" = 6 f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE date_trunc('year', invoice_date) = '2011-01-01' GROUP BY country HAVING count(*) > 400
--> [country 4] where ("invoice_date" < timestamp '2012-01-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE date_trunc('year', invoice_date) = '2011-01-02' GROUP BY country HAVING count(*) > 400
--> [country 0] where false f0 > 400 ~40; count(*) delta 1 in 0..0

SELECT country FROM sales WHERE to_char(invoice_date, 'YYYY-MM') = '2011-06' GROUP BY country HAVING count(*) > 400
--> [country 4] where "month" = date '2011-06-01' f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE to_char(invoice_date, 'Mon YYYY') = 'Jun 2011' GROUP BY country HAVING count(*) > 400
--> KH205 to_char(invoice_date,

SELECT ward FROM visits WHERE to_char(arrived, 'Dy') < 'Sun' GROUP BY ward HAVING count(*) > 400
--> KH205 'Sun'

SELECT country FROM sales WHERE lower(stock_code) LIKE '%s1%' GROUP BY country HAVING count(*) > 400
--> [country 4] where ("stock_code" LIKE '%S1%' OR "stock_code" LIKE '%s1%') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE lower(stock_code) LIKE '%S1%' GROUP BY country HAVING count(*) > 400
--> [country 0] where false f0 > 400 ~40; count(*) delta 1 in 0..0

SELECT ward FROM visits WHERE disease ILIKE 'kidney%' GROUP BY ward HAVING count(*) > 400
--> [ward 3] where "lower(disease)" LIKE 'kidney%' f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE disease ILIKE 'köln%' GROUP BY ward HAVING count(*) > 400
--> KH205 disease

SELECT ward FROM visits WHERE trim(disease) NOT ILIKE '%Fl_' GROUP BY ward HAVING count(*) > 400
--> [ward 3] where NOT ("lower(trim(disease))" LIKE '%fl_') f0 > 400 ~40; count(*) delta 1

SELECT country FROM sales WHERE position('S1' IN stock_code) > 0 GROUP BY country HAVING count(*) > 400
--> [country 4] where "stock_code" LIKE '%S1%' f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE strpos(lower(stock_code), 'kit') = 0 GROUP BY country HAVING count(*) > 400
--> [country 4] where NOT ("lower(stock_code)" LIKE '%kit%') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE strpos(stock_code, 'S1') = 3 GROUP BY country HAVING count(*) > 400
--> KH205 strpos(stock_code,

SELECT ward FROM visits WHERE upper(disease) = 'FLU' GROUP BY ward HAVING count(*) > 400
--> [ward 3] where "upper(disease)" = 'FLU' f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE disease ~ '^flu' GROUP BY ward HAVING count(*) > 400
--> [ward 3] where "disease" LIKE 'flu%' f0 > 400 ~40; count(*) delta 1

SELECT country FROM sales WHERE starts_with(stock_code, 'S_') OR left(stock_code, 2) = 'P1' GROUP BY country HAVING count(*) > 400
--> [country 4] where ("stock_code" LIKE 'P1%' OR "stock_code" LIKE 'S\_%') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE stock_code LIKE 'S1' || '%' OR stock_code LIKE '50/%' ESCAPE '/' GROUP BY country HAVING count(*) > 400
--> [country 4] where ("stock_code" LIKE '50\%' OR "stock_code" LIKE 'S1%') f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT ward FROM visits WHERE coalesce(disease, 'none') = 'none' AND coalesce(insured, false) GROUP BY ward HAVING count(*) > 400
--> [ward 3] where ("insured" = true AND ("disease" = 'none' OR "disease" IS NULL)) f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE age + 5 > 70 AND 2 * age < 181 GROUP BY ward HAVING count(*) > 400
--> [ward 3] where ("age" < 91 AND "age" > 65) f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE age % 2 = 0 GROUP BY ward HAVING count(*) > 400
--> [ward 3] where "remainder(age, 2)" = 0 f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE cost / 100 > 10 GROUP BY ward HAVING count(*) > 400
--> [ward 3] where "(10000000000000e-10 < cost(28,10))" = true f0 > 400 ~40; count(*) delta 1

SELECT ward FROM visits WHERE (ward, disease) IN (('A', 'flu'), ('B', 'cold')) GROUP BY ward HAVING count(*) > 400
--> [ward 2] where (("disease" = 'cold' AND "ward" = 'B') OR ("disease" = 'flu' AND "ward" = 'A')) f0 > 400 ~40; count(*) delta 1

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

-- # what is computed of a row
SELECT country FROM sales WHERE 1 / (quantity - 5) > 0 GROUP BY country HAVING count(*) > 5
--> [country 4] where "quotient(1, (quantity + -5))" > 0 f0 > 5 ~0; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE quantity = customer_id GROUP BY country HAVING count(*) > 5
--> [country 4] where "(customer_id@ = quantity@)" = true f0 > 5 ~0; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE length(stock_code) > 5 GROUP BY country HAVING count(*) > 5
--> [country 4] where "length(stock_code)" > 5 f0 > 5 ~0; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE CASE WHEN gift THEN quantity % 2 = 0 ELSE false END GROUP BY country HAVING count(*) > 5
--> [country 4] where ("gift" = true AND "remainder(quantity, 2)" = 0) f0 > 5 ~0; count(*) delta 100 in 0..100

SELECT month FROM sales WHERE amount > 10 * quantity GROUP BY month HAVING count(*) > 500
--> [month 13] where "(((10 * quantity) * 100) < amount(10,2))" = true f0 > 500 ~50; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE amount / nullif(quantity, 0) > 5 GROUP BY country HAVING count(*) > 100
--> [country 4] where "< by(((5 * nullif(quantity, 0)) * 100), amount(10,2), nullif(quantity, 0))" = true f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT month FROM sales WHERE invoice_date - date_trunc('month', invoice_date) < interval '7 days' GROUP BY month HAVING count(*) > 3000
--> [month 13] where "(invoice_date - (start(month invoice_date) * 86400000000))" < 604800000000 f0 > 3000 ~300; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE abs(quantity) * amount > 100 AND length(stock_code) = 5 GROUP BY country HAVING count(*) > 100
--> [country 4] where ("(abs(quantity) * amount(10,2))" > 10000 AND "length(stock_code)" = 5) f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT month FROM sales WHERE extract(isodow FROM invoice_date) >= 6 OR stock_code = upper(stock_code) GROUP BY month HAVING count(*) > 1000
--> [month 13] where ("(rest(((floor(invoice_date, 86400000000) + 3) - (floor((floor(invoice_date, 86400000000) + 3), 7) * 7)) numeric.0) + 1)" >= 6 OR "(stock_code = upper(stock_code))" = true) f0 > 1000 ~100; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE lower(trim(stock_code)) = 'kiwi' GROUP BY country HAVING count(*) > 100
--> [country 4] where "lower(trim(stock_code))" = 'kiwi' f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE lower(stock_code) LIKE '%kiwi-basket%' GROUP BY country HAVING count(*) > 100
--> [country 4] where "lower(stock_code)" LIKE '%kiwi-basket%' f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE amount BETWEEN quantity AND 2 * quantity GROUP BY country HAVING count(*) > 100
--> [country 4] where ("(((2 * quantity) * 100) < amount(10,2))" = false AND "(amount(10,2) < (quantity * 100))" = false) f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE NOT (amount >= quantity) GROUP BY country HAVING count(*) > 100
--> [country 4] where "(amount(10,2) < (quantity * 100))" = true f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE weight * quantity > 12.5 GROUP BY country HAVING count(*) > 100
--> [country 4] where "(weight * double(quantity))" > 12.5 f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE amount - quantity IN (1, 2) GROUP BY country HAVING count(*) > 100
--> [country 4] where "(amount(10,2) + (negate(quantity) * 100))" IN (100, 200) f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE extract(hour FROM invoice_date) BETWEEN 9 AND 11 GROUP BY country HAVING count(*) > 100
--> [country 4] where ("floor(rest((invoice_date - (floor(invoice_date, 86400000000) * 86400000000)) integer.0), 3600000000)" <= 11 AND "floor(rest((invoice_date - (floor(invoice_date, 86400000000) * 86400000000)) integer.0), 3600000000)" >= 9) f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE amount + quantity IS NOT NULL GROUP BY country HAVING count(*) > 100
--> [country 4] where NOT ("(amount(10,2) + (quantity * 100))" IS NULL) f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE customer_id % 10 = 3 GROUP BY country HAVING count(*) > 100
--> [country 4] where "remainder(customer_id, 10)" = 3 f0 > 100 ~10; count(*) delta 100 in 0..100

SELECT ward FROM visits WHERE arrived - day > interval '18 hours' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "(arrived - (day * 86400000000))" > 64800000000 f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE arrived::date - day < 30 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "(floor(arrived, 86400000000) - day)" < 30 f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE extract(epoch FROM arrived - date_trunc('day', arrived)) / 3600 >= 18 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "(same((arrived - (floor(arrived, 86400000000) * 86400000000)) numeric.6) < 64800000000e-6)" = false f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE greatest(age, 18) * 2 > least(cost, 100) GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "(least(cost(28,10), 1000000000000e-10) < ((greatest(age, 18) * 2) * 10000000000))" = true f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE cost > 10 * age) > 40
--> [ward 3] f0 > 40 ~4; count(*) FILTER (WHERE cost > 10 * age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN cost > 10 * age THEN cost ELSE 0 END) > 4000
--> [ward 3] f0 > 8000 ~800; sum(CASE WHEN cost > 10 * age THEN cost ELSE 0 END) delta 10000

SELECT ward FROM visits GROUP BY ward HAVING avg(abs(age - 50)) > 20
--> [ward 3] f0 > 0 ~100; avg(abs(age - 50)) - 20 1x-20 delta 40

SELECT ward FROM visits GROUP BY ward HAVING sum(round(age / 10.0)) > 40
--> [ward 3] f0 > 40 ~4; sum(round(age / 10.0)) delta 11

SELECT ward FROM visits GROUP BY ward HAVING avg(least(greatest(arrived::date - date '2026-01-01', 0), 60)) > 5
--> [ward 3] f0 > 0 ~25; avg(least(greatest(CAST(arrived AS DATE) - CAST('2026-01-01' AS DATE), 0), 60)) - 5 1x-5 delta 55

SELECT ward FROM visits GROUP BY ward HAVING avg(least(extract(epoch FROM arrived - date_trunc('day', arrived)), 86400)) > 43200
--> [ward 3] f0 > 0 ~2160000; avg(least(EXTRACT(EPOCH FROM arrived - date_trunc('DAY', arrived)), 86400)) - 43200 1x-432000 delta 432000

SELECT ward FROM visits GROUP BY ward ORDER BY avg(cost / age) DESC LIMIT 2
--> KH203 avg(cost

SELECT country FROM sales GROUP BY country ORDER BY avg(weight) DESC LIMIT 2
--> KH203 avg(weight)

SELECT ward FROM visits GROUP BY ward HAVING avg(arrived::date - date '2026-01-01') > 5
--> [ward 3] f0 > 0 ~25; avg(CAST(arrived AS DATE) - CAST('2026-01-01' AS DATE)) - 5 1x-5 delta 5

SELECT ward FROM visits GROUP BY ward HAVING avg(arrived - timestamp '2026-01-01') > 5
--> KH204 5

SELECT ward FROM visits WHERE to_char(arrived, 'Day') = disease GROUP BY ward HAVING count(*) > 40
--> KH205 to_char(arrived,

SELECT ward FROM visits WHERE disease < ward GROUP BY ward HAVING count(*) > 40
--> KH205 ward

SELECT ward FROM visits WHERE age + cost + height > 12 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "(double(((age * 10000) + cost(13,4))) + height)" > 12 f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE coalesce(left(disease, 3), 'flu') = 'flu' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "coalesce(left(disease, 3), 'flu')" = 'flu' f0 > 40 ~4; count(*) delta 1
SELECT country FROM sales WHERE CASE WHEN quantity > 10 THEN 1 ELSE 0 END = 1 GROUP BY country HAVING count(*) > 40
--> [country 4] where "quantity" > 10 f0 > 40 ~4; count(*) delta 100 in 0..100

SELECT ward FROM visits WHERE CASE WHEN insured THEN 1 ELSE 0 END = 1 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "insured" = true f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE split_part(disease, '-', 1) = 'flu' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "split_part(disease, '-', 1)" = 'flu' f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE arrived::time >= '18:00' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "rest((arrived - (floor(arrived, 86400000000) * 86400000000)) time.0)" >= 64800000000 f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE arrived::time >= '18:70' GROUP BY ward HAVING count(*) > 40
--> KH212 '18:70'

SELECT ward FROM visits WHERE floor(age) / 2 > 1.2 GROUP BY ward HAVING count(*) > 400
--> [ward 3] where "(24e-1 < (same(age numeric.0) * 10))" = true f0 > 400 ~40; count(*) delta 1

SELECT country FROM sales WHERE floor(amount / 100) >= 2 AND round(quantity, -1) = 20 GROUP BY country HAVING count(*) > 400
--> [country 4] where ("(round(quantity, 10) * 10)" = 20 AND "floor(amount(10,2), 10000)" >= 2) f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE ceil(amount / -100) >= 2 OR trunc(amount / 7, 1) < 3 GROUP BY country HAVING count(*) > 400
--> [country 4] where ("ceil(negate(amount(10,2)), 10000)" >= 2 OR "trunc(amount(10,2), 70)" < 30) f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country HAVING sum(round(amount, -2)) > 20000
--> [country 4] f0 > 20000 ~2000; sum(round(amount, -2)) delta 50000 in -50000..50000

SELECT country FROM sales WHERE floor(amount / quantity) >= 2 GROUP BY country HAVING count(*) > 400
--> [country 4] where "floor of(amount(10,2), (quantity * 100))" >= 2 f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT ward FROM visits WHERE disease ~ '^not_|lu$' AND disease !~ 'x.y' AND disease SIMILAR TO '%a|fl_' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where (("disease" LIKE '%a' OR "disease" LIKE 'fl_') AND ("disease" LIKE '%lu' OR "disease" LIKE 'not\_%') AND NOT ("disease" LIKE '%x_y%')) f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE disease ~* '^flu' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("disease" LIKE 'FLU%' OR "disease" LIKE 'FLu%' OR "disease" LIKE 'FlU%' OR "disease" LIKE 'Flu%' OR "disease" LIKE 'fLU%' OR "disease" LIKE 'fLu%' OR "disease" LIKE 'flU%' OR "disease" LIKE 'flu%') f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE disease ~ '^[a-f]' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "matches(disease, '^[a-f]')" = true f0 > 40 ~4; count(*) delta 1
-- # Months added to what is computed of a time, and what the calendar says of it then.

SELECT ward FROM visits WHERE arrived < date_trunc('month', arrived) + interval '1 month - 7 days' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "(arrived < (moved(1 (start(month arrived) * 86400000000)) + -604800000000))" = true f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE (date_trunc('month', arrived) + interval '1 month - 1 day')::date = arrived::date GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "(floor((moved(1 (start(month arrived) * 86400000000)) + -86400000000), 86400000000) = floor(arrived, 86400000000))" = true f0 > 40 ~4; count(*) delta 1

SELECT country FROM sales WHERE CASE WHEN invoice_date < date_trunc('month', month) + interval '1 month' THEN 1 ELSE 0 END = 1 GROUP BY country HAVING count(*) > 400
--> [country 4] where "(invoice_date < moved(1 (start(month (same(month date.0) * 86400000000)) * 86400000000)))" = true f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE extract(year FROM invoice_date - interval '6 months') = 2010 GROUP BY country HAVING count(*) > 400
--> [country 4] where "part(year moved(-6 invoice_date))" = 2010 f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE extract(day FROM invoice_date + interval '1 day') = 1 GROUP BY country HAVING count(*) > 400
--> [country 4] where "part(day (invoice_date + 86400000000))" = 1 f0 > 400 ~40; count(*) delta 100 in 0..100

SELECT ward FROM visits WHERE arrived < date_trunc('century', arrived) + interval '1 month' GROUP BY ward HAVING count(*) > 40
--> KH205 date_trunc('century',

SELECT ward FROM visits WHERE arrived < date_trunc('month', arrived) + interval '20000 months' GROUP BY ward HAVING count(*) > 40
--> KH205 date_trunc('month',

-- # Numbers that texts say.

SELECT ward FROM visits WHERE disease::int > 3 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "number(disease integer)" > 3 f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE nullif(trim(disease), '')::numeric(6,2) >= 2.5 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "same(round(number(nullif(trim(disease), '') numeric.4.14), 1000000000000) numeric.2)" >= 250 f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE CAST(left(disease, 4) AS integer) BETWEEN 2020 AND 2024) > 40
--> [ward 3] f0 > 40 ~4; count(*) FILTER (WHERE CAST(left(disease, 4) AS INT) BETWEEN 2020 AND 2024) delta 1

SELECT ward FROM visits WHERE CASE WHEN disease::double precision > 0.5 THEN 'a' ELSE 'b' END = 'a' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "number(disease double precision)" > 0.5 f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE disease::numeric > age GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "((age * 10000000000) < number(disease numeric.18.10))" = true f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE disease::numeric(30,2) > 3 GROUP BY ward HAVING count(*) > 40
--> KH205 disease::numeric(30,2)

SELECT ward FROM visits WHERE disease::boolean GROUP BY ward HAVING count(*) > 40
--> KH205 disease::boolean

SELECT ward FROM visits WHERE disease::int = 'many' GROUP BY ward HAVING count(*) > 40
--> KH212 'many'

SELECT ward FROM visits WHERE disease::int = 2.5 GROUP BY ward HAVING count(*) > 40
--> [ward 0] where false f0 > 40 ~4; count(*) delta 1

-- # Ages, compared as PostgreSQL compares intervals.

SELECT ward FROM visits WHERE age(timestamp '2026-06-01', arrived) > interval '18 months' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "age(1780272000000000, arrived)" > 46656000000000 f0 > 40 ~4; count(*) delta 1

SELECT country FROM sales GROUP BY country HAVING count(*) FILTER (WHERE age(invoice_date, month) < '7 days') > 400
--> [country 4] f0 > 400 ~40; count(*) FILTER (WHERE age(invoice_date, month) < '7 days') delta 100 in 0..100

SELECT ward FROM visits WHERE extract(year FROM age(date '2026-06-01', arrived)) * 12 + extract(month FROM age(date '2026-06-01', arrived)) >= 18 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "months(1780272000000000, arrived)" >= 18 f0 > 40 ~4; count(*) delta 1

SELECT age(date '2026-06-01', arrived) > interval '1 year' AS old FROM visits GROUP BY 1 HAVING count(*) > 40
--> [age(CAST('2026-06-01' AS DATE), arrived) > INTERVAL '1 YEAR' 3] f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE extract(epoch FROM age(date '2026-06-01', arrived)) > 86400 GROUP BY ward HAVING count(*) > 40
--> KH205 age(date

SELECT ward FROM visits WHERE arrived + age(date '2026-06-01', arrived) > '2026-01-01' GROUP BY ward HAVING count(*) > 40
--> KH205 arrived

SELECT age(date '2026-06-01', arrived) FROM visits GROUP BY 1 HAVING count(*) > 40
--> KH202 age(date

-- # Doubles that are rounded as numerics.

SELECT ward FROM visits WHERE round(height::numeric, 1) > 1.8 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "round double(height numeric.1)" > 18 f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE CASE WHEN trunc((100 * height)::numeric) >= 180 THEN 'tall' ELSE 'other' END = 'tall' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "trunc double((100.0 * height) numeric.0)" >= 180 f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE height::numeric(5,2) = 1.75) > 40
--> [ward 3] f0 > 40 ~4; count(*) FILTER (WHERE CAST(height AS DECIMAL(5, 2)) = 1.75) delta 1

SELECT ward FROM visits WHERE round(height) = 2 GROUP BY ward HAVING count(*) > 40
--> KH205 round(height)

SELECT ward FROM visits WHERE round(height::numeric, 20) = 2 GROUP BY ward HAVING count(*) > 40
--> KH205 round(height::numeric,

SELECT ward FROM visits GROUP BY ward HAVING avg(round(height::numeric, 1)) > 1.8
--> [ward 3] f0 > 0 ~90; avg(round(CAST(height AS DECIMAL), 1)) - 1.8 1x-18 delta 18

-- # Regular expressions of classes, which all engines read alike.

SELECT ward FROM visits WHERE CASE WHEN disease ~ '^[0-9]+$' THEN disease::int > 3 ELSE false END GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("matches(disease, '^[0-9]+$')" = true AND "number(disease integer)" > 3) f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE left(disease, 6) ~ '^[A-Z]{2}-\d{3}' AND disease !~ '[^A-Z0-9-]' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("matches(disease, '[^A-Z0-9-]')" = false AND "matches(left(disease, 6), '^[A-Z]{2}-[0-9]{3}')" = true) f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE disease ~ '^-?\d+(\.\d+)?$' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "matches(disease, '^-?[0-9]+(?:[.][0-9]+)?$')" = true f0 > 40 ~4; count(*) delta 1

SELECT ward FROM visits WHERE disease ~ '^(a+)+$' GROUP BY ward HAVING count(*) > 40
--> KH205 disease

SELECT ward FROM visits WHERE disease ~ '[a-z]*[a-z]*x' GROUP BY ward HAVING count(*) > 40
--> KH205 disease

SELECT ward FROM visits WHERE disease ~ '\w' GROUP BY ward HAVING count(*) > 40
--> KH205 disease

-- # Conditions that no row satisfies leave no groups.
SELECT ward, hour FROM visits WHERE age > 40 AND (age < 20 OR disease = 'flu' AND disease = 'cold') GROUP BY ward, hour HAVING count(*) < 100
--> [ward 0, hour 0] where ("age" > 40 AND ("age" < 20 OR ("disease" = 'cold' AND "disease" = 'flu'))) f0 <= 99 ~10; count(*) delta 1
SELECT ward FROM visits WHERE arrived > '2026-01-05' AND arrived < '2026-01-05' GROUP BY ward HAVING count(*) < 100
--> [ward 0] where ("arrived" < timestamp '2026-01-05 00:00:00' AND "arrived" > timestamp '2026-01-05 00:00:00') f0 <= 99 ~10; count(*) delta 1

SELECT country FROM sales WHERE split_part(stock_code, '-') = 'a' GROUP BY country HAVING count(*) > 500
--> KH205 split_part(stock_code,

SELECT country FROM sales WHERE substring(stock_code) = 'a' GROUP BY country HAVING count(*) > 500
--> KH205 stock_code)
