-- # What can be asked: every aggregate of a HAVING, on the row as unit, with clipped totals, and under a cap of rows.
-- # Counts.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING COUNT(1) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count('x') > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(age) > 40
--> [ward 3] f0 > 40 ~4; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(ALL age) > 40
--> [ward 3] f0 > 40 ~4; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(disease) > 40
--> [ward 3] f0 > 40 ~4; count(disease) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(visits.age) > 40
--> [ward 3] f0 > 40 ~4; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(NULL) > 40
--> KH204 count(NULL)
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) > 40
--> [ward 3] f0 > 40 ~4; count(*) FILTER (WHERE insured) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE NOT insured) > 40
--> [ward 3] f0 > 40 ~4; count(*) FILTER (WHERE NOT insured) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(age) FILTER (WHERE disease = 'flu') > 40
--> [ward 3] f0 > 40 ~4; count(age) FILTER (WHERE disease = 'flu') delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE false) > 40
--> KH204 count(*)
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE disease LIKE 'in_luen%') > 40
--> [ward 3] f0 > 40 ~4; count(*) FILTER (WHERE disease LIKE 'in_luen%') delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(CASE WHEN disease IN ('flu', 'cold') THEN 1 END) > 40
--> [ward 3] f0 > 40 ~4; count(CASE WHEN disease IN ('flu', 'cold') THEN 1 END) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(CASE WHEN disease = 'flu' THEN 1 ELSE NULL END) > 40
--> [ward 3] f0 > 40 ~4; count(CASE WHEN disease = 'flu' THEN 1 ELSE NULL END) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(CASE disease WHEN 'flu' THEN age END) > 40
--> [ward 3] f0 > 40 ~4; count(CASE disease WHEN 'flu' THEN age END) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(coalesce(age, 0)) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(coalesce(age, 0)) - count(age) > 40
--> [ward 3] f0 > 40 ~4; count(*) - count(age) {+1 -1 age^0} delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) - count(disease) > 40
--> [ward 3] f0 > 40 ~4; count(*) - count(disease) {+1 -1 disease^0} delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(age + 1) > 40
--> [ward 3] f0 > 40 ~4; count(age + 1) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(ward) > 40
--> [ward 3] f0 > 40 ~4; count(ward) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(age, cost) > 40
--> KH204 count(age,
SELECT ward FROM visits GROUP BY ward HAVING count(visits) > 40
--> KH201 visits)
SELECT ward FROM visits GROUP BY ward HAVING count() > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT country FROM sales GROUP BY country HAVING count(*) FILTER (WHERE quantity >= 10) > 400
--> [country 4] f0 > 400 ~40; count(*) FILTER (WHERE quantity >= 10) delta 100 in 0..100
SELECT country FROM capped_sales GROUP BY country HAVING count(stock_code) > 400
--> [country 4] f0 > 400 ~40; count(stock_code) delta 5
-- # Distinct units.
SELECT country, month FROM sales GROUP BY country, month HAVING count(DISTINCT customer_id) > 30
--> [country 4, month 13] f0 > 30 ~3; count(DISTINCT customer_id) delta 1
SELECT month FROM sales GROUP BY month HAVING count(DISTINCT customer_id) > 30
--> [month 13] f0 > 30 ~3; count(DISTINCT customer_id) delta 1
SELECT month FROM sales GROUP BY month HAVING count(DISTINCT (customer_id, month)) >= 30
--> [month 13] f0 > 29 ~3; count(DISTINCT customer_id, month) delta 1
SELECT month FROM sales GROUP BY month HAVING count(DISTINCT ROW(customer_id, month)) >= 30
--> KH209 count(DISTINCT
SELECT month FROM sales GROUP BY month HAVING count(DISTINCT customer_id) FILTER (WHERE gift) > 30
--> [month 13] f0 > 30 ~3; count(DISTINCT customer_id) FILTER (WHERE gift) delta 1
SELECT month FROM capped_sales GROUP BY month HAVING count(DISTINCT customer_id) > 30 AND count(*) > 100
--> [month 13] (f0 > 30 ~3 and f1 > 100 ~10); count(DISTINCT customer_id) delta 1; count(*) delta 5
SELECT month FROM sales GROUP BY month HAVING 100.0 * count(DISTINCT customer_id) / count(*) > 30
--> KH204 100.0
SELECT month FROM sales GROUP BY month HAVING count(*) > 2 * count(DISTINCT customer_id)
--> [month 13] f0 > 0 ~770; count(*) - 2 * count(DISTINCT customer_id) delta 98 in -2..98
SELECT month FROM sales GROUP BY month HAVING count(*) FILTER (WHERE amount > 5) >= 3 * count(DISTINCT customer_id) AND count(DISTINCT customer_id) > 100
--> [month 13] (f0 > -1 ~760 and f1 > 100 ~10); count(*) FILTER (WHERE amount > 5) - 3 * count(DISTINCT customer_id) delta 97 in -3..97; count(DISTINCT customer_id) delta 1
SELECT month FROM sales GROUP BY month HAVING count(DISTINCT customer_id) FILTER (WHERE amount > 5) > 0.5 * count(DISTINCT customer_id)
--> [month 13] f0 > 0 ~7; count(DISTINCT customer_id) FILTER (WHERE amount > 5) - 0.5 * count(DISTINCT customer_id) {+2 if "amount" > 5 -1} delta 1 in -1..1
SELECT month FROM sales GROUP BY month HAVING count(DISTINCT customer_id) FILTER (WHERE amount > 5) > count(DISTINCT customer_id) FILTER (WHERE amount <= 5)
--> [month 13] f0 > 0 ~7; count(DISTINCT customer_id) FILTER (WHERE amount > 5) - count(DISTINCT customer_id) FILTER (WHERE amount <= 5) {+1 if "amount" > 5 -1 if "amount" <= 5} delta 1 in -1..1
SELECT month FROM sales GROUP BY month HAVING count(DISTINCT customer_id) FILTER (WHERE amount > 5) > 0.1 * count(*)
--> KH204 count(DISTINCT
SELECT country FROM sales GROUP BY country HAVING count(DISTINCT customer_id) > 30
--> [country 4] f0 > 30 ~3; count(DISTINCT customer_id) delta 1 in 0..1
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT visit_id) > 30
--> [ward 3] f0 > 30 ~3; count(DISTINCT visit_id) delta 1
-- # Sums.
SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000
--> [ward 3] f0 > 4000 ~400; sum(age) delta 110
SELECT ward FROM visits GROUP BY ward HAVING SUM(ALL age) >= 4000
--> [ward 3] f0 > 3999 ~400; sum(age) delta 110
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) > 4000.25
--> [ward 3] f0 > 8000 ~800; sum(cost) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(age) = 4000
--> [ward 3] (f0 > 3999 ~400 and f0 <= 4000 ~400); sum(age) delta 110
SELECT ward FROM visits GROUP BY ward HAVING sum(age) < 4000
--> KH206 sum(age) else [ward 3] (f0 <= 3999 ~400 and f1 > 49 ~5); sum(age) delta 110; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(age) < 4000 AND count(age) >= 10
--> [ward 3] (f0 <= 3999 ~400 and f1 > 9 ~1); sum(age) delta 110; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING coalesce(sum(age), 0) < 4000
--> [ward 3] f0 <= 3999 ~400; coalesce(sum(age), 0) delta 110
SELECT ward FROM visits GROUP BY ward HAVING coalesce(sum(cost), 0) > 4000
--> [ward 3] f0 > 8000 ~800; coalesce(sum(cost), 0) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(coalesce(age, 40)) > 4000
--> [ward 3] f0 > 4000 ~400; sum(coalesce(age, 40)) {+1 age +40 if "age" IS NULL} delta 110
SELECT ward FROM visits GROUP BY ward HAVING sum(age) FILTER (WHERE insured) > 4000
--> [ward 3] f0 > 4000 ~400; sum(age) FILTER (WHERE insured) delta 110
SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN insured THEN cost ELSE 0 END) > 4000
--> [ward 3] f0 > 8000 ~800; sum(CASE WHEN insured THEN cost ELSE 0 END) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN insured THEN cost END) FILTER (WHERE age > 65) > 4000
--> [ward 3] f0 > 8000 ~800; sum(CASE WHEN insured THEN cost END) FILTER (WHERE age > 65) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN age < 18 THEN 1 WHEN age < 65 THEN 2 ELSE 3 END) > 4000
--> [ward 3] f0 > 4000 ~400; sum(CASE WHEN age < 18 THEN 1 WHEN age < 65 THEN 2 ELSE 3 END) {+1 if "age" < 18 +2 if ("age" < 65 AND ("age" >= 18 OR "age" IS NULL)) +3 if (("age" >= 18 OR "age" IS NULL) AND ("age" >= 65 OR "age" IS NULL))} delta 3
SELECT ward FROM visits GROUP BY ward HAVING sum(CASE disease WHEN 'flu' THEN cost WHEN 'cold' THEN cost / 2 ELSE 0 END) > 4000
--> [ward 3] f0 > 16000 ~1600; sum(CASE disease WHEN 'flu' THEN cost WHEN 'cold' THEN cost / 2 ELSE 0 END) {+2 cost if "disease" = 'flu' +1 cost if ("disease" = 'cold' AND ("disease" <> 'flu' OR "disease" IS NULL))} delta 20000
SELECT ward FROM visits GROUP BY ward HAVING sum(1) > 40
--> [ward 3] f0 > 40 ~4; sum(1) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(0) > 40
--> KH204 sum(0)
SELECT ward FROM visits GROUP BY ward HAVING sum(insured::int) > 40
--> [ward 3] f0 > 40 ~4; sum(CAST(insured AS INT)) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum((age > 65)::integer) > 40
--> [ward 3] f0 > 40 ~4; sum(CAST((age > 65) AS INT)) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(CAST(insured AND age > 65 AS int)) > 40
--> [ward 3] f0 > 40 ~4; sum(CAST(insured AND age > 65 AS INT)) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(age * 2) > 4000
--> [ward 3] f0 > 2000 ~200; sum(age * 2) delta 110
SELECT ward FROM visits GROUP BY ward HAVING sum(age + cost) > 4000
--> [ward 3] f0 > 8000 ~800; sum(age + cost) {+2 age if NOT ("cost" IS NULL) +1 cost if NOT ("age" IS NULL)} delta 10220
SELECT ward FROM visits GROUP BY ward HAVING sum(cost - 10 * age) > 4000 AND count(age) > 10 AND count(cost) > 10
--> [ward 3] (f0 > 8000 ~800 and f1 > 10 ~1 and f2 > 10 ~1); sum(cost - 10 * age) {+1 cost if NOT ("age" IS NULL) -20 age if NOT ("cost" IS NULL)} delta 10000; count(age) delta 1; count(cost) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(cost / 100) > 40
--> [ward 3] f0 > 8000 ~800; sum(cost / 100) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(age::numeric / 2) > 40
--> [ward 3] f0 > 80 ~8; sum(CAST(age AS DECIMAL) / 2) delta 110
SELECT ward FROM visits GROUP BY ward HAVING sum(cost * 1.19) > 4000
--> [ward 3] f0 > 6722 ~672; sum(cost * 1.19) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(NULL) > 40
--> KH204 sum(NULL)
SELECT ward FROM visits GROUP BY ward HAVING sum(-age) < -4000
--> [ward 3] f0 <= -4001 ~400; sum(-age) {-1 age} delta 110
SELECT country FROM sales GROUP BY country HAVING sum(amount) > 10000
--> [country 4] f0 > 1000000 ~100000; sum(amount) delta 150000 in -100000..150000
SELECT country FROM sales GROUP BY country HAVING sum(amount * 2) > 10000
--> [country 4] f0 > 500000 ~50000; sum(amount * 2) delta 150000 in -100000..150000
SELECT country FROM capped_sales GROUP BY country HAVING sum(amount) > 10000
--> [country 4] f0 > 1000000 ~100000; sum(amount) delta 250000
SELECT country FROM sales GROUP BY country HAVING sum(quantity) FILTER (WHERE gift AND amount < 5) > 10000
--> [country 4] f0 > 10000 ~1000; sum(quantity) FILTER (WHERE gift AND amount < 5) delta 1000 in 0..1000
SELECT ward FROM visits GROUP BY ward HAVING sum(age / 2) > 40
--> KH204 age
SELECT ward FROM visits GROUP BY ward HAVING sum(age * cost) > 4000
--> [ward 3] f0 > 8000 ~800; sum(age * cost) delta 1100000
SELECT ward FROM visits GROUP BY ward HAVING sum(cost * age) FILTER (WHERE insured AND age < 50 AND cost >= 100) > 4000
--> [ward 3] f0 > 8000 ~800; sum(cost * age) FILTER (WHERE insured AND age < 50 AND cost >= 100) delta 490000
SELECT country FROM sales GROUP BY country HAVING sum(amount * quantity) > 1000
--> [country 4] f0 > 100000 ~10000; sum(amount * quantity) delta 500000000 in -500000000..500000000
SELECT country FROM sales GROUP BY country HAVING sum(quantity * quantity) > 10000
--> [country 4] f0 > 10000 ~1000; sum(quantity * quantity) delta 1000000 in 0..1000000
SELECT country FROM sales GROUP BY country HAVING sum(amount * (100 - quantity) / 100) > 1000
--> [country 4] f0 > 10000000 ~1000000; sum(amount * (100 - quantity) / 100) {+100 amount if NOT ("amount * quantity" IS NULL) -1 amount * quantity} delta 1000000000 in -1000000000..1000000000
SELECT country FROM sales GROUP BY country HAVING sum(amount * 1.2) > 1000
--> [country 4] f0 > 83333 ~8333; sum(amount * 1.2) delta 150000 in -100000..150000
SELECT ward FROM visits GROUP BY ward HAVING avg(cost * age) < 100 AND count(age * cost) >= 50
--> [ward 3] (f0 <= -1 ~1000 and f1 > 49 ~5); avg(cost * age) - 100 1x-200 delta 1099800; count(age * cost) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(cost * age) <= 100
--> KH206 avg(cost else [ward 3] (f0 <= 0 ~1000 and f1 > 49 ~5); avg(cost * age) - 100 1x-200 delta 1099800; count(age * cost) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(coalesce(cost * age, 0)) > 4000
--> [ward 3] f0 > 8000 ~800; sum(coalesce(cost * age, 0)) delta 1100000
SELECT ward FROM visits GROUP BY ward HAVING sum(cost * cost * cost * cost) > 5
--> KH204 sum(cost
SELECT ward FROM visits GROUP BY ward HAVING sum(cost * age * cost * age * cost) > 5
--> KH204 cost
SELECT ward FROM visits GROUP BY ward HAVING sum(cost / age) > 5
--> KH203 sum(cost
SELECT country FROM sales GROUP BY country HAVING sum(amount * weight) > 5
--> KH203 sum(amount
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT cost * age) > 5
--> [ward 3] f0 > 5 ~0; count(DISTINCT cost * age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT lower(trim(disease))) > 20
--> [ward 3] f0 > 20 ~2; count(DISTINCT lower(trim(disease))) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT date_trunc('month', arrived)) FILTER (WHERE insured) > 20
--> [ward 3] f0 > 20 ~2; count(DISTINCT date_trunc('MONTH', arrived)) FILTER (WHERE insured) delta 1
SELECT country FROM sales GROUP BY country HAVING count(DISTINCT abs(quantity)) > 20
--> [country 4] f0 > 20 ~2; count(DISTINCT abs(quantity)) delta 100 in 0..100
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT height * 2) > 5
--> KH209 count(DISTINCT
SELECT ward FROM visits GROUP BY ward HAVING max(upper(disease)) > 'x'
--> KH204 upper(disease))
SELECT ward FROM visits GROUP BY ward HAVING sum(power(age, 2)) > 4000
--> KH204 power(age,
SELECT ward FROM visits GROUP BY ward HAVING sum(age % 2) > 40
--> [ward 3] f0 > 40 ~4; sum(age % 2) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(ward) > 40
--> KH204 sum(ward)
SELECT ward FROM visits GROUP BY ward HAVING sum(arrived) > 40
--> KH204 sum(arrived)
SELECT ward FROM visits GROUP BY ward HAVING sum(DISTINCT age) > 40
--> KH204 sum(DISTINCT
-- # Means.
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 65
--> [ward 3] f0 > 0 ~325; avg(age) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING avg(age) >= 65
--> KH206 avg(age) else [ward 3] (f0 > -1 ~585 and f1 > 99 ~10); avg(age) - 65 1x-65 delta 65; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age) >= 65 AND count(*) >= 100
--> KH206 avg(age) else [ward 3] (f1 > -1 ~585 and f2 > 99 ~10 and f0 > 99 ~10); count(*) delta 1; avg(age) - 65 1x-65 delta 65; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age) >= 65 AND count(age) >= 100
--> [ward 3] (f0 > -1 ~585 and f1 > 99 ~10); avg(age) - 65 1x-65 delta 65; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age) < 65
--> [ward 3] f0 <= -1 ~325; avg(age) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING avg(age) BETWEEN 30 AND 40 AND count(age) > 20
--> [ward 3] (f0 > -1 ~150 and f1 <= 0 ~200 and f2 > 20 ~2); avg(age) - 30 1x-30 delta 80; avg(age) - 40 1x-40 delta 70; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(cost) > 99.95
--> [ward 3] f0 > 0 ~9995; avg(cost) - 99.95 10x-1999 delta 98001
SELECT ward FROM visits GROUP BY ward HAVING avg(age) FILTER (WHERE insured) > 65
--> [ward 3] f0 > 0 ~325; avg(age) FILTER (WHERE insured) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING avg(age)::int > 65
--> KH206 avg(age)::int else [ward 3] (f0 > -1 ~1179 and f1 > 99 ~10); avg(age) - 65.5 2x-131 delta 131; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age)::numeric > 65
--> [ward 3] f0 > 0 ~325; avg(age) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING avg(age)::float8 > 65
--> [ward 3] f0 > 0 ~325; avg(age) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING avg(age::float) > 65
--> [ward 3] f0 > 0 ~325; avg(CAST(age AS DOUBLE PRECISION)) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING avg(CASE WHEN insured THEN age END) > 65
--> [ward 3] f0 > 0 ~325; avg(CASE WHEN insured THEN age END) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING avg(CASE WHEN insured THEN 1.0 ELSE 0 END) > 0.5
--> [ward 3] f0 > 0 ~5; avg(CASE WHEN insured THEN 1.0 ELSE 0 END) - 0.5 {+2 if "insured" = true -1} delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(insured::int) > 0.5
--> [ward 3] f0 > 0 ~5; avg(CAST(insured AS INT)) - 0.5 {+2 if "insured" = true -1 if ("insured" = false OR "insured" = true)} delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(coalesce(cost, 0)) > 100
--> [ward 3] f0 > 0 ~1000; avg(coalesce(cost, 0)) - 100 {+1 cost -200} delta 9800
SELECT ward FROM visits GROUP BY ward HAVING coalesce(avg(cost), 0) > 100
--> [ward 3] f0 > 0 ~1000; avg(cost) - 100 1x-200 delta 9800
SELECT ward FROM visits GROUP BY ward HAVING coalesce(avg(cost), 0) < 100
--> KH204 coalesce(avg(cost),
SELECT ward FROM visits GROUP BY ward HAVING avg(cost - 100) > 5
--> [ward 3] f0 > 0 ~50; avg(cost - 100) - 5 1x-210 delta 9790
SELECT ward FROM visits GROUP BY ward HAVING 2 * avg(age) + 10 > 140
--> [ward 3] f0 > 0 ~325; avg(age) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > avg(cost) + 200
--> KH204 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING (avg(age) > avg(cost)) IS NOT TRUE
--> KH204 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 200
--> KH220 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING avg(age) >= 110 AND count(age) > 10
--> [ward 3] (f0 > -1 ~550 and f1 > 10 ~1); avg(age) - 110 1x-110 delta 110; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 110 AND count(age) > 10
--> KH220 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING avg(age) <= 200
--> KH220 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING NOT avg(age) > 200
--> KH220 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING avg(age) < 200 AND count(age) > 10
--> [ward 3] f0 > 10 ~1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age) < 200 AND count(*) > 10
--> [ward 3] (f0 <= -1 ~1000 and f1 > 10 ~1); avg(age) - 200 1x-200 delta 200; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 200 OR count(*) > 10
--> [ward 3] f0 > 10 ~1; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age) FILTER (WHERE age < 60) >= 70 OR count(*) > 10
--> [ward 3] f0 > 10 ~1; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(age) < 0
--> KH220 sum(age)
SELECT ward FROM visits GROUP BY ward HAVING sum(age) > -5
--> KH220 sum(age)
SELECT ward FROM visits GROUP BY ward HAVING sum(age) >= 0 AND count(age) > 10
--> [ward 3] f0 > 10 ~1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING 1.0 * count(*) FILTER (WHERE insured) / count(*) > 20
--> KH220 1.0
SELECT ward FROM visits GROUP BY ward HAVING max(age) > 200
--> [ward 3] f0 > 0 ~0; count(*) FILTER (WHERE "age" > 200) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE age > 200) > 10
--> [ward 3] f0 > 10 ~1; count(*) FILTER (WHERE age > 200) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > -1
--> KH220 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING avg(height) > 1.8
--> KH203 avg(height)
SELECT ward FROM visits GROUP BY ward HAVING round(avg(age)) >= 65 AND count(age) > 20
--> [ward 3] (f0 > -1 ~645 and f1 > 20 ~2); avg(age) - 64.5 2x-129 delta 129; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING round(avg(cost), 2) > 99.99
--> KH206 round(avg(cost), else [ward 3] (f0 > -1 ~99995 and f1 > 49 ~5); avg(cost) - 99.995 100x-19999 delta 980001; count(cost) delta 1
SELECT ward FROM visits GROUP BY ward HAVING floor(avg(age)) = 65 AND count(age) > 20
--> [ward 3] (f0 > -1 ~325 and f1 <= -1 ~330 and f2 > 20 ~2); avg(age) - 65 1x-65 delta 65; avg(age) - 66 1x-66 delta 66; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING ceil(avg(age)) > 65
--> [ward 3] f0 > 0 ~325; avg(age) - 65 1x-65 delta 65
SELECT country FROM sales GROUP BY country HAVING avg(amount) > 20 AND avg(quantity) > 3
--> [country 4] (f0 > 0 ~10000 and f1 > 0 ~15); avg(amount) - 20 1x-2000 delta 300000 in -300000..144000; avg(quantity) - 3 1x-3 delta 970 in -300..970
SELECT country FROM capped_sales GROUP BY country HAVING avg(amount) BETWEEN 20 AND 30 AND count(amount) >= 50
--> [country 4] (f0 > -1 ~10000 and f1 <= 0 ~15000 and f2 > 49 ~5); avg(amount) - 20 1x-2000 delta 260000; avg(amount) - 30 1x-3000 delta 265000; count(amount) delta 5
SELECT ward FROM visits GROUP BY ward HAVING avg(DISTINCT age) > 65
--> KH204 avg(DISTINCT
-- # Ratios, shares and percentages.
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / count(*) > 100
--> [ward 3] f0 > 0 ~1000; sum(cost) / count(*) - 100 {+1 cost -200} delta 9800
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / count(cost) > 100
--> [ward 3] f0 > 0 ~1000; sum(cost) / count(cost) - 100 1x-200 delta 9800
SELECT ward FROM visits GROUP BY ward HAVING sum(age) / count(*) > 65
--> KH206 sum(age) else [ward 3] (f0 > -1 ~594 and f1 > 99 ~10); sum(age) / count(*) - 66 {+1 age -66} delta 66; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(age)::numeric / count(*) > 65
--> [ward 3] f0 > 0 ~325; sum(age) / count(*) - 65 {+1 age -65} delta 65
SELECT ward FROM visits GROUP BY ward HAVING CAST(sum(age) AS double precision) / count(*) > 65
--> [ward 3] f0 > 0 ~325; sum(age) / count(*) - 65 {+1 age -65} delta 65
SELECT ward FROM visits GROUP BY ward HAVING sum(age) * 1.0 / count(*) > 65
--> [ward 3] f0 > 0 ~325; sum(age) / count(*) - 65 {+1 age -65} delta 65
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) / count(*) > 0.5
--> KH206 count(*) else [ward 3] (f0 > -1 ~9 and f1 > 99 ~10); count(*) FILTER (WHERE insured) / count(*) - 1 {+1 if "insured" = true -1} delta 1; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured)::numeric / count(*) > 0.5
--> [ward 3] f0 > 0 ~5; count(*) FILTER (WHERE insured) / count(*) - 0.5 {+2 if "insured" = true -1} delta 1
SELECT ward FROM visits GROUP BY ward HAVING 100.0 * count(*) FILTER (WHERE insured) / count(*) > 50
--> [ward 3] f0 > 0 ~5; 100 * count(*) FILTER (WHERE insured) / count(*) - 50 {+2 if "insured" = true -1} delta 1
SELECT ward FROM visits GROUP BY ward HAVING 100 * count(*) FILTER (WHERE insured) / count(*)::float > 50
--> [ward 3] f0 > 0 ~5; 100 * count(*) FILTER (WHERE insured) / count(*) - 50 {+2 if "insured" = true -1} delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) > 0.5 * count(*)
--> [ward 3] f0 > 0 ~7; count(*) FILTER (WHERE insured) - 0.5 * count(*) {+2 if "insured" = true -1} delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) * 2 > count(*)
--> [ward 3] f0 > 0 ~7; count(*) FILTER (WHERE insured) - 0.5 * count(*) {+2 if "insured" = true -1} delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) * 100.0 / nullif(count(*), 0) > 50
--> [ward 3] f0 > 0 ~5; 100 * count(*) FILTER (WHERE insured) / count(*) - 50 {+2 if "insured" = true -1} delta 1
SELECT ward FROM visits GROUP BY ward HAVING round(100.0 * count(*) FILTER (WHERE insured) / count(*), 1) > 50
--> KH206 round(100.0 else [ward 3] (f0 > -1 ~9009 and f1 > 99 ~10); 100 * count(*) FILTER (WHERE insured) / count(*) - 50.05 {+2000 if "insured" = true -1001} delta 1001; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING round(100.0 * sum(CASE WHEN insured THEN 1 ELSE 0 END) / count(*), 1) >= 50 AND count(*) > 50
--> [ward 3] (f0 > -1 ~4995 and f1 > 50 ~5); 100 * sum(CASE WHEN insured THEN 1 ELSE 0 END) / count(*) - 49.95 {+2000 if "insured" = true -999} delta 1001; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE age > 65) / nullif(count(age), 0)::numeric > 0.2
--> [ward 3] f0 > 0 ~5; count(*) FILTER (WHERE age > 65) / count(age) - 0.2 {+5 if "age" > 65 -1 age^0} delta 4
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) FILTER (WHERE insured) / sum(cost) > 0.5
--> KH206 sum(cost) else [ward 3] (f0 > 0 ~45000 and f1 > 499999 ~50000); sum(cost) FILTER (WHERE insured) / sum(cost) - 0.5 {+2 cost if "insured" = true -1 cost} delta 10000; sum(cost) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) FILTER (WHERE insured) > 0.5 * sum(cost)
--> [ward 3] f0 > 0 ~80000; sum(cost) FILTER (WHERE insured) - 0.5 * sum(cost) {+2 cost if "insured" = true -1 cost} delta 10000
SELECT country FROM sales GROUP BY country HAVING count(*) FILTER (WHERE extract(year FROM invoice_date) = 2011) > 1.1 * count(*) FILTER (WHERE extract(year FROM invoice_date) = 2010)
--> [country 4] f0 > 0 ~8700; count(*) FILTER (WHERE EXTRACT(YEAR FROM invoice_date) = 2011) - 1.1 * count(*) FILTER (WHERE EXTRACT(YEAR FROM invoice_date) = 2010) {+10 if ("invoice_date" < timestamp '2012-01-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') -11 if ("invoice_date" < timestamp '2011-01-01 00:00:00' AND "invoice_date" >= timestamp '2010-01-01 00:00:00')} delta 1100 in -1100..1000
SELECT ward FROM visits GROUP BY ward HAVING count(CASE WHEN insured THEN 1 END) <= count(CASE WHEN NOT insured THEN 1 END)
--> [ward 3] f0 <= 0 ~7; count(CASE WHEN insured THEN 1 END) - count(CASE WHEN NOT insured THEN 1 END) {+1 if "insured" = true -1 if "insured" = false} delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) FILTER (WHERE insured) / (sum(cost) / 1000.0) > 500
--> KH206 sum(cost) else [ward 3] (f0 > 0 ~45000 and f1 > 499999 ~50000); sum(cost) FILTER (WHERE insured) / (0.001 * sum(cost)) - 500 {+2 cost if "insured" = true -1 cost} delta 10000; sum(cost) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) FILTER (WHERE insured) > 0.5 * coalesce(sum(cost), 0) + 50
--> [ward 3] f0 > 200 ~20; sum(cost) FILTER (WHERE insured) - 0.5 * coalesce(sum(cost), 0) {+2 cost if "insured" = true -1 cost} delta 10000
SELECT ward FROM visits GROUP BY ward HAVING count(*) / count(DISTINCT ward) > 5
--> KH204 count(*)
SELECT country FROM sales GROUP BY country HAVING sum(amount) / count(*) > 20
--> [country 4] f0 > 0 ~10000; sum(amount) / count(*) - 20 {+1 amount -2000} delta 5200000 in -5200000..4800000
SELECT country FROM sales GROUP BY country HAVING sum(amount) / sum(quantity) > 20
--> KH206 sum(amount) else [country 4] (f0 > 0 ~9000000 and f1 > 49999 ~5000); sum(amount) / sum(quantity) - 20 {+1 amount -2000 quantity} delta 2100000 in -2100000..150000; sum(quantity) delta 1000 in 0..1000
SELECT ward FROM visits GROUP BY ward HAVING count(*) / 7 > 10
--> [ward 3] f0 > 76 ~7; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) / 7.0 > 10
--> [ward 3] f0 > 70 ~7; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) / 0 > 10
--> KH212 count(*)
SELECT ward FROM visits GROUP BY ward HAVING count(*) % 2 = 1
--> KH204 count(*)
-- # Two aggregates.
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) > count(*) FILTER (WHERE NOT insured) + 20
--> [ward 3] f0 > 20 ~2; count(*) FILTER (WHERE insured) - count(*) FILTER (WHERE NOT insured) {+1 if "insured" = true -1 if "insured" = false} delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) * 0.2 > count(*) + 100
--> [ward 3] f0 > 1000 ~100; sum(cost) - 5 * count(*) {+1 cost -10} delta 9990
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) - sum(age) > 1000 AND count(age) > 5 AND count(cost) > 5
--> [ward 3] (f0 > 2000 ~200 and f1 > 5 ~0 and f2 > 5 ~0); sum(cost) - sum(age) {+1 cost -2 age} delta 10000; count(age) delta 1; count(cost) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) > 10 * sum(age) + 500
--> KH206 sum(cost) else [ward 3] (f0 > 1000 ~100 and f1 > 49 ~5); sum(cost) - 10 * sum(age) {+1 cost -20 age} delta 10000; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) * count(*) > 400
--> KH204 count(*)
SELECT ward FROM visits GROUP BY ward HAVING count(*) > count(*)
--> KH204 count(*)
SELECT ward FROM visits GROUP BY ward HAVING count(*) - count(*) FILTER (WHERE insured) >= 40
--> [ward 3] f0 > 39 ~4; count(*) - count(*) FILTER (WHERE insured) {+1 -1 if "insured" = true} delta 1
SELECT ward FROM visits GROUP BY ward HAVING sqrt(count(*)) > 5
--> KH204 sqrt(count(*))
SELECT ward FROM visits GROUP BY ward HAVING greatest(count(*), 5) > 50
--> [ward 3] f0 > 50 ~5; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING abs(sum(cost)) > 50
--> [ward 3] f0 > 100 ~10; sum(cost) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sqrt(sum(cost)) > 50
--> KH204 sqrt(sum(cost))
SELECT ward FROM visits GROUP BY ward HAVING abs(count(*) FILTER (WHERE insured) - count(*) FILTER (WHERE NOT insured)) < 50
--> [ward 3] (f0 <= 49 ~5 and f0 > -50 ~5); count(*) FILTER (WHERE insured) - count(*) FILTER (WHERE NOT insured) {+1 if "insured" = true -1 if "insured" = false} delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) > count(*) / 2
--> [ward 3] f0 > 0 ~7; count(*) FILTER (WHERE insured) - 0.5 * count(*) {+2 if "insured" = true -1} delta 1
SELECT ward FROM visits GROUP BY ward HAVING (count(*) + count(cost)) / 4 >= count(*) FILTER (WHERE insured)
--> [ward 3] f0 <= 0 ~23; count(*) FILTER (WHERE insured) - 0.25 * count(*) - 0.25 * count(cost) {+4 if "insured" = true -1 -1 cost^0} delta 3
SELECT country FROM sales GROUP BY country HAVING count(*) > sum(quantity) / 2
--> KH204 sum(quantity)
SELECT ward FROM visits GROUP BY ward HAVING count(*) ^ 2 > 400
--> KH204 count(*)
SELECT ward FROM visits GROUP BY ward HAVING mod(count(*), 2) = 0
--> KH204 mod(count(*),
-- # Extremes, percentiles, truth.
SELECT ward FROM visits GROUP BY ward HAVING max(age) > 100
--> [ward 3] f0 > 0 ~0; count(*) FILTER (WHERE "age" > 100) delta 1
SELECT ward FROM visits GROUP BY ward HAVING max(age) >= 100 OR min(age) < 1
--> [ward 3] (f0 > 0 ~0 or f1 > 0 ~0); count(*) FILTER (WHERE "age" >= 100) delta 1; count(*) FILTER (WHERE "age" < 1) delta 1
SELECT ward FROM visits GROUP BY ward HAVING max(age) < 100
--> KH206 max(age) else [ward 3] (f0 <= 0 ~0 and f1 > 49 ~5); count(*) FILTER (WHERE "age" >= 100) delta 1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING max(age) < 100 AND count(age) > 10
--> [ward 3] (f0 <= 0 ~0 and f1 > 10 ~1); count(*) FILTER (WHERE "age" >= 100) delta 1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING min(age) >= 18 AND count(age) > 10
--> [ward 3] (f0 <= 0 ~0 and f1 > 10 ~1); count(*) FILTER (WHERE "age" < 18) delta 1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING max(age) = 100
--> [ward 3] (f0 > 0 ~0 and f1 <= 0 ~0); count(*) FILTER (WHERE "age" >= 100) delta 1; count(*) FILTER (WHERE "age" > 100) delta 1
SELECT ward FROM visits GROUP BY ward HAVING max(arrived) > '2026-01-05'
--> [ward 3] f0 > 0 ~0; count(*) FILTER (WHERE "arrived" > timestamp '2026-01-05 00:00:00') delta 1
SELECT ward FROM visits GROUP BY ward HAVING min(day) < date '2026-01-03'
--> [ward 3] f0 > 0 ~0; count(*) FILTER (WHERE "day" < date '2026-01-03') delta 1
SELECT ward FROM visits GROUP BY ward HAVING max(disease) > 'flu'
--> KH205 'flu'
SELECT ward FROM visits GROUP BY ward HAVING max(age) FILTER (WHERE insured) > 100
--> [ward 3] f0 > 0 ~0; count(*) FILTER (WHERE ("age" > 100 AND "insured" = true)) delta 1
SELECT ward FROM visits GROUP BY ward HAVING max(age) - min(age) > 50
--> KH204 max(age)
SELECT ward FROM visits GROUP BY ward HAVING max(age + 1) > 50
--> [ward 3] f0 > 0 ~0; count(*) FILTER (WHERE "(age + 1)" > 50) delta 1
SELECT ward FROM visits GROUP BY ward HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY age) > 65
--> [ward 3] f0 > 0 ~10; count(*) FILTER (WHERE "age" > 65) - 0.5 * count(*) FILTER (WHERE NOT ("age" IS NULL)) {+2 if "age" > 65 -1 if NOT ("age" IS NULL)} delta 1
SELECT ward FROM visits GROUP BY ward HAVING percentile_disc(0.9) WITHIN GROUP (ORDER BY cost) FILTER (WHERE insured) >= 1000
--> [ward 3] f0 > 0 ~50; count(*) FILTER (WHERE ("cost" >= 1000 AND "insured" = true)) - 0.1 * count(*) FILTER (WHERE ("insured" = true AND NOT ("cost" IS NULL))) {+10 if ("cost" >= 1000 AND "insured" = true) -1 if ("insured" = true AND NOT ("cost" IS NULL))} delta 9
SELECT ward FROM visits GROUP BY ward HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY age) > 65 AND count(age) > 20
--> [ward 3] (f0 > -1 ~10 and f1 > 20 ~2); count(*) FILTER (WHERE "age" > 65) - 0.5 * count(*) FILTER (WHERE NOT ("age" IS NULL)) {+2 if "age" > 65 -1 if NOT ("age" IS NULL)} delta 1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY age) > 65
--> KH206 percentile_cont(0.5) else [ward 3] (f0 > -1 ~10 and f1 > 49 ~5); count(*) FILTER (WHERE "age" > 65) - 0.5 * count(*) FILTER (WHERE NOT ("age" IS NULL)) {+2 if "age" > 65 -1 if NOT ("age" IS NULL)} delta 1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING percentile_cont(0.1) WITHIN GROUP (ORDER BY age DESC) > 65 AND count(age) > 20
--> [ward 3] (f0 > -1 ~50 and f1 > 20 ~2); count(*) FILTER (WHERE "age" > 65) - 0.1 * count(*) FILTER (WHERE NOT ("age" IS NULL)) {+10 if "age" > 65 -1 if NOT ("age" IS NULL)} delta 9; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING percentile_disc(0.1) WITHIN GROUP (ORDER BY age DESC) > 65
--> KH204 age
SELECT ward FROM visits GROUP BY ward HAVING percentile_disc(1.5) WITHIN GROUP (ORDER BY age) > 65
--> KH204 percentile_disc(1.5)
SELECT ward FROM visits GROUP BY ward HAVING median(age) > 65 AND count(age) > 20
--> [ward 3] (f0 > -1 ~10 and f1 > 20 ~2); count(*) FILTER (WHERE "age" > 65) - 0.5 * count(*) FILTER (WHERE NOT ("age" IS NULL)) {+2 if "age" > 65 -1 if NOT ("age" IS NULL)} delta 1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING mode() WITHIN GROUP (ORDER BY age) > 65
--> KH204 mode()
SELECT ward FROM visits GROUP BY ward HAVING bool_or(age > 100)
--> [ward 3] f0 > 0 ~0; count(*) FILTER (WHERE "age" > 100) delta 1
SELECT ward FROM visits GROUP BY ward HAVING bool_and(age > 18) AND count(age) > 20
--> [ward 3] (f0 <= 0 ~0 and f1 > 20 ~2); count(*) FILTER (WHERE "age" <= 18) delta 1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING every(insured)
--> KH206 insured) else [ward 3] (f0 <= 0 ~0 and f1 > 49 ~5); count(*) FILTER (WHERE "insured" = false) delta 1; count(insured) delta 1
SELECT ward FROM visits GROUP BY ward HAVING NOT bool_or(insured) AND count(insured) > 20
--> [ward 3] (f0 <= 0 ~0 and f1 > 20 ~2); count(*) FILTER (WHERE "insured" = true) delta 1; count(insured) delta 1
SELECT ward FROM visits GROUP BY ward HAVING bool_or(insured) = true
--> [ward 3] f0 > 0 ~0; count(*) FILTER (WHERE "insured" = true) delta 1
SELECT ward FROM visits GROUP BY ward HAVING bool_or(insured) IS NOT TRUE
--> [ward 3] f0 <= 0 ~0; count(*) FILTER (WHERE "insured" = true) delta 1
-- # Variances and standard deviations, by means of squares around centres.
SELECT ward FROM visits GROUP BY ward HAVING stddev(age) > 10
--> KH206 stddev(age) else [ward 3] (f0 > -100 ~618 and f1 > -100 ~618 and f2 > -100 ~618 and f3 > -100 ~618 and f4 > -100 ~618 and f5 > -400 ~2474 and f6 > -400 ~2474 and f7 > -400 ~2474 and f8 > -400 ~2474 and f9 > -400 ~2474 and f10 > -400 ~2474 and f11 > -400 ~2474 and f12 > -400 ~2474 and f13 > -400 ~2474 and f14 > -400 ~2474 and f15 > -400 ~2474 and f16 > -400 ~2474 and f17 > -100 ~618 and f18 > -100 ~618 and f19 > -100 ~618 and f20 > -100 ~618 and f21 > -100 ~618 and f22 > 49 ~5); avg((age - 3)^2) - 100 {+1 age^2 -6 age -91 age^0} delta 11349; avg((age - 8)^2) - 100 {+1 age^2 -16 age -36 age^0} delta 10304; avg((age - 13)^2) - 100 {+1 age^2 -26 age +69 age^0} delta 9309; avg((age - 18)^2) - 100 {+1 age^2 -36 age +224 age^0} delta 8364; avg((age - 23)^2) - 100 {+1 age^2 -46 age +429 age^0} delta 7469; avg((age - 27.5)^2) - 100 {+4 age^2 -220 age +2625 age^0} delta 26825; avg((age - 32.5)^2) - 100 {+4 age^2 -260 age +3825 age^0} delta 23625; avg((age - 37.5)^2) - 100 {+4 age^2 -300 age +5225 age^0} delta 20625; avg((age - 42.5)^2) - 100 {+4 age^2 -340 age +6825 age^0} delta 17825; avg((age - 47.5)^2) - 100 {+4 age^2 -380 age +8625 age^0} delta 15225; avg((age - 52.5)^2) - 100 {+4 age^2 -420 age +10625 age^0} delta 12825; avg((age - 57.5)^2) - 100 {+4 age^2 -460 age +12825 age^0} delta 12825; avg((age - 62.5)^2) - 100 {+4 age^2 -500 age +15225 age^0} delta 15225; avg((age - 67.5)^2) - 100 {+4 age^2 -540 age +17825 age^0} delta 17825; avg((age - 72.5)^2) - 100 {+4 age^2 -580 age +20625 age^0} delta 20625; avg((age - 77.5)^2) - 100 {+4 age^2 -620 age +23625 age^0} delta 23625; avg((age - 82.5)^2) - 100 {+4 age^2 -660 age +26825 age^0} delta 26825; avg((age - 87)^2) - 100 {+1 age^2 -174 age +7469 age^0} delta 7469; avg((age - 92)^2) - 100 {+1 age^2 -184 age +8364 age^0} delta 8364; avg((age - 97)^2) - 100 {+1 age^2 -194 age +9309 age^0} delta 9309; avg((age - 102)^2) - 100 {+1 age^2 -204 age +10304 age^0} delta 10304; avg((age - 107)^2) - 100 {+1 age^2 -214 age +11349 age^0} delta 11349; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING variance(cost) > 4000000 AND count(cost) >= 10
--> [ward 3] (f0 > -16000000 ~44368750 and f1 > -16000000 ~44368750 and f2 > -16000000 ~44368750 and f3 > -16000000 ~44368750 and f4 > 9 ~1); avg((cost - 1262.5)^2) - 4000000 {+1 cost^2 -5050 cost -9624375 cost^0} delta 39875625; avg((cost - 2087.5)^2) - 4000000 {+1 cost^2 -8350 cost +1430625 cost^0} delta 17930625; avg((cost - 2912.5)^2) - 4000000 {+1 cost^2 -11650 cost +17930625 cost^0} delta 17930625; avg((cost - 3737.5)^2) - 4000000 {+1 cost^2 -14950 cost +39875625 cost^0} delta 39875625; count(cost) delta 1
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) / avg(age) > 0.5
--> KH204 stddev_pop(age)
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > 54
--> [ward 3] (f0 > 0 ~19252 and f1 > 0 ~19252); avg((age - 42)^2) - 2916 {+1 age^2 -84 age -1152 age^0} delta 2916; avg((age - 68)^2) - 2916 {+1 age^2 -136 age +1708 age^0} delta 2916
SELECT ward FROM visits GROUP BY ward HAVING var_pop(age) > 2500
--> [ward 3] (f0 > 0 ~31950 and f1 > 0 ~7987 and f2 > 0 ~31950); avg((age - 36.5)^2) - 2500 {+4 age^2 -292 age -4671 age^0} delta 11609; avg((age - 55)^2) - 2500 {+1 age^2 -110 age +525 age^0} delta 2500; avg((age - 73.5)^2) - 2500 {+4 age^2 -588 age +11609 age^0} delta 11609
SELECT ward FROM visits GROUP BY ward HAVING sqrt(var_pop(age)) > 50
--> [ward 3] (f0 > 0 ~10950 and f1 > 0 ~10950); avg((age - 39)^2) - 2500 {+1 age^2 -78 age -979 age^0} delta 2541; avg((age - 71)^2) - 2500 {+1 age^2 -142 age +2541 age^0} delta 2541
SELECT ward FROM visits GROUP BY ward HAVING 50 < stddev_pop(age)
--> [ward 3] (f0 > 0 ~10950 and f1 > 0 ~10950); avg((age - 39)^2) - 2500 {+1 age^2 -78 age -979 age^0} delta 2541; avg((age - 71)^2) - 2500 {+1 age^2 -142 age +2541 age^0} delta 2541
SELECT ward FROM visits GROUP BY ward HAVING 2 * stddev_pop(age)::numeric > 100
--> [ward 3] (f0 > 0 ~10950 and f1 > 0 ~10950); avg((age - 39)^2) - 2500 {+1 age^2 -78 age -979 age^0} delta 2541; avg((age - 71)^2) - 2500 {+1 age^2 -142 age +2541 age^0} delta 2541
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(2 * age + 1) > 100
--> [ward 3] (f0 > 0 ~10950 and f1 > 0 ~10950); avg((2 * age + 1 - 79)^2) - 10000 {+1 age^2 -78 age -979 age^0} delta 2541; avg((2 * age + 1 - 143)^2) - 10000 {+1 age^2 -142 age +2541 age^0} delta 2541
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(CASE WHEN insured THEN age END) > 50
--> [ward 3] (f0 > 0 ~10950 and f1 > 0 ~10950); avg((CASE WHEN insured THEN age END - 39)^2) - 2500 {+1 age^2 if "insured" = true -78 age if "insured" = true -979 age^0 if "insured" = true} delta 2541; avg((CASE WHEN insured THEN age END - 71)^2) - 2500 {+1 age^2 if "insured" = true -142 age if "insured" = true +2541 age^0 if "insured" = true} delta 2541
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) FILTER (WHERE age BETWEEN 20 AND 40) > 9
--> [ward 3] (f0 > 0 ~319 and f1 > 0 ~319); avg((age - 27)^2) FILTER (WHERE age BETWEEN 20 AND 40) - 81 {+1 age^2 if ("age" <= 40 AND "age" >= 20) -54 age if ("age" <= 40 AND "age" >= 20) +648 age^0 if ("age" <= 40 AND "age" >= 20)} delta 88; avg((age - 33)^2) FILTER (WHERE age BETWEEN 20 AND 40) - 81 {+1 age^2 if ("age" <= 40 AND "age" >= 20) -66 age if ("age" <= 40 AND "age" >= 20) +1008 age^0 if ("age" <= 40 AND "age" >= 20)} delta 88
SELECT ward FROM visits WHERE age BETWEEN 20 AND 40 GROUP BY ward HAVING stddev_pop(age) > 9
--> [ward 3] where ("age" <= 40 AND "age" >= 20) (f0 > 0 ~319 and f1 > 0 ~319); avg((age - 27)^2) - 81 {+1 age^2 -54 age +648 age^0} delta 88; avg((age - 33)^2) - 81 {+1 age^2 -66 age +1008 age^0} delta 88
SELECT ward FROM visits GROUP BY ward HAVING NOT stddev_pop(age) <= 50
--> [ward 3] (f0 > 0 ~10950 and f1 > 0 ~10950); avg((age - 39)^2) - 2500 {+1 age^2 -78 age -979 age^0} delta 2541; avg((age - 71)^2) - 2500 {+1 age^2 -142 age +2541 age^0} delta 2541
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) < 50
--> [ward 3] (f0 <= -1 ~19637 or f1 <= -1 ~19637); avg((age - 43.5)^2) - 2632.25 {+1 age^2 -87 age -740 age^0} delta 2632; avg((age - 66.5)^2) - 2632.25 {+1 age^2 -133 age +1790 age^0} delta 2632
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) <= 50
--> KH206 stddev_pop(age) else [ward 3] ((f0 <= 0 ~19637 or f1 <= 0 ~19637) and f2 > 49 ~5); avg((age - 43.5)^2) - 2632.25 {+1 age^2 -87 age -740 age^0} delta 2632; avg((age - 66.5)^2) - 2632.25 {+1 age^2 -133 age +1790 age^0} delta 2632; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) <= 50 AND count(age) > 40
--> [ward 3] ((f0 <= 0 ~19637 or f1 <= 0 ~19637) and f2 > 40 ~4); avg((age - 43.5)^2) - 2632.25 {+1 age^2 -87 age -740 age^0} delta 2632; avg((age - 66.5)^2) - 2632.25 {+1 age^2 -133 age +1790 age^0} delta 2632; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING stddev_samp(age) < 50 AND count(age) > 1
--> [ward 3] ((f0 <= -40001 ~249150 or f1 <= -40001 ~249150 or f2 <= -40001 ~249150) and f3 > 1 ~0); avg((age - 26.5)^2) - 2703.0625 {+16 age^2 -848 age -32013 age^0} delta 68307; avg((age - 55)^2) - 2703.0625 {+16 age^2 -1760 age +5151 age^0} delta 43249; avg((age - 83.5)^2) - 2703.0625 {+16 age^2 -2672 age +68307 age^0} delta 68307; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) >= 50 OR count(*) > 40
--> KH206 stddev_pop(age) else [ward 3] ((f1 > -1 ~19710 and f2 > -1 ~19710 and f3 > 99 ~10) or f0 > 40 ~4); count(*) delta 1; avg((age - 39)^2) - 2500 {+1 age^2 -78 age -979 age^0} delta 2541; avg((age - 71)^2) - 2500 {+1 age^2 -142 age +2541 age^0} delta 2541; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > 55
--> [ward 3] false; 
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > -1
--> [ward 3] f0 > 0 ~0; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) < 0
--> [ward 3] false; 
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) <= 55 AND count(*) > 40
--> [ward 3] (f0 > 0 ~0 and f1 > 40 ~4); count(age) delta 1; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > 0
--> KH204 stddev_pop(age)
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) <= 0 AND count(age) >= 10
--> KH304 stddev_pop(age)
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(DISTINCT age) > 50
--> KH204 stddev_pop(DISTINCT
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > stddev_pop(cost)
--> KH208 stddev_pop(cost)
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > avg(age)
--> KH208 avg(age)
SELECT ward FROM visits GROUP BY ward HAVING round(stddev_pop(age), 1) > 50
--> KH204 stddev_pop(age),
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) + 1 > 50
--> KH204 stddev_pop(age)
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age + cost) > 50
--> KH204 stddev_pop(age
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(coalesce(age, 0)) > 50
--> KH204 stddev_pop(coalesce(age,
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(height) > 50
--> KH203 stddev_pop(height)
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(disease) > 50
--> KH204 stddev_pop(disease)
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > NULL
--> [ward 3] false; 
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 EXCEPT SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > 50
--> [ward 3] (f0 > 100 ~10 and (f1 <= 0 ~19637 or f2 <= 0 ~19637)); count(*) delta 1; avg((age - 43.5)^2) - 2632.25 {+1 age^2 -87 age -740 age^0} delta 2632; avg((age - 66.5)^2) - 2632.25 {+1 age^2 -133 age +1790 age^0} delta 2632
SELECT country FROM sales GROUP BY country HAVING stddev_pop(quantity) > 95
--> [country 4] (f0 > 0 ~51937 and f1 > 0 ~51937); avg((quantity + 26)^2) - 9025 {+1 quantity^2 +52 quantity -8349 quantity^0} delta 902500 in -902500..685100; avg((quantity - 26)^2) - 9025 {+1 quantity^2 -52 quantity -8349 quantity^0} delta 902500 in -902500..685100
SELECT country FROM capped_sales GROUP BY country HAVING stddev_pop(quantity) > 95
--> [country 4] (f0 > 0 ~51937 and f1 > 0 ~51937); avg((quantity + 26)^2) - 9025 {+1 quantity^2 +52 quantity -8349 quantity^0} delta 45125; avg((quantity - 26)^2) - 9025 {+1 quantity^2 -52 quantity -8349 quantity^0} delta 45125
SELECT ward FROM visits GROUP BY ward HAVING variance(age) = 2500 AND count(age) >= 10
--> [ward 3] (f0 > -10001 ~29987 and f1 > -2501 ~7496 and f2 > -10001 ~29987 and (f3 <= -10000 ~34550 or f4 <= -10000 ~34550 or f5 <= -10000 ~34550 or f6 <= -10000 ~34550 or f7 <= -10000 ~34550) and f8 > 9 ~1); avg((age - 35.5)^2) - 2500 {+4 age^2 -284 age -4959 age^0} delta 12201; avg((age - 55)^2) - 2500 {+1 age^2 -110 age +525 age^0} delta 2500; avg((age - 74.5)^2) - 2500 {+4 age^2 -596 age +12201 age^0} delta 12201; avg((age - 21)^2) - 2572.25 {+4 age^2 -168 age -8525 age^0} delta 21395; avg((age - 38)^2) - 2572.25 {+4 age^2 -304 age -4513 age^0} delta 10447; avg((age - 55)^2) - 2572.25 {+4 age^2 -440 age +1811 age^0} delta 10289; avg((age - 72)^2) - 2572.25 {+4 age^2 -576 age +10447 age^0} delta 10447; avg((age - 89)^2) - 2572.25 {+4 age^2 -712 age +21395 age^0} delta 21395; count(age) delta 1
-- # What is not a sum over rows.
SELECT ward FROM visits GROUP BY ward HAVING corr(age, cost) > 0.5
--> KH204 corr(age,
SELECT ward FROM visits GROUP BY ward HAVING string_agg(disease, ',') = 'flu'
--> KH204 disease,
SELECT ward FROM visits GROUP BY ward HAVING array_agg(age) IS NOT NULL
--> KH207 array_agg(age)
SELECT ward FROM visits GROUP BY ward HAVING array_length(array_agg(age), 1) > 5
--> KH204 array_length(array_agg(age),
SELECT ward FROM visits GROUP BY ward HAVING count(*) OVER () > 5
--> KH204 count(*)
SELECT ward FROM visits GROUP BY ward HAVING grouping(ward) = 0
--> KH204 grouping(ward)
SELECT ward FROM visits GROUP BY ward HAVING any_value(age) > 5
--> KH204 any_value(age)
SELECT ward FROM visits GROUP BY ward HAVING my_aggregate(age) > 5
--> KH204 my_aggregate(age)
SELECT ward FROM visits GROUP BY ward HAVING approx_count_distinct(age) > 5
--> KH204 approx_count_distinct(age)
SELECT country FROM sales GROUP BY country HAVING sum(weight) > 5
--> KH203 sum(weight)
SELECT country FROM sales GROUP BY country HAVING avg(customer_id) > 5
--> KH203 avg(customer_id)
SELECT country FROM sales GROUP BY country HAVING count(attributes) > 5
--> KH204 attributes)
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT disease) > 30
--> [ward 3] f0 > 30 ~3; count(DISTINCT disease) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT disease) FILTER (WHERE insured) BETWEEN 30 AND 40
--> [ward 3] (f0 > 29 ~3 and f0 <= 40 ~4); count(DISTINCT disease) FILTER (WHERE insured) delta 1
SELECT country FROM sales GROUP BY country HAVING count(DISTINCT stock_code) > 300
--> [country 4] f0 > 300 ~30; count(DISTINCT stock_code) delta 100 in 0..100
SELECT country FROM capped_sales GROUP BY country HAVING count(DISTINCT stock_code) > 300
--> [country 4] f0 > 300 ~30; count(DISTINCT stock_code) delta 5
SELECT country FROM sales GROUP BY country HAVING count(DISTINCT weight) > 300
--> KH209 count(DISTINCT
-- # Conditions on what is summed narrow its range; means are clipped to what units within all their bounds can reach.
SELECT ward FROM visits GROUP BY ward HAVING sum(age) FILTER (WHERE age < 10) > 100
--> [ward 3] f0 > 100 ~10; sum(age) FILTER (WHERE age < 10) delta 9
SELECT ward FROM visits WHERE age BETWEEN 5 AND 20 GROUP BY ward HAVING sum(age) > 500
--> [ward 3] where ("age" <= 20 AND "age" >= 5) f0 > 500 ~50; sum(age) delta 20
SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN age <= 17 THEN age ELSE 18 END) > 500
--> [ward 3] f0 > 500 ~50; sum(CASE WHEN age <= 17 THEN age ELSE 18 END) {+1 age if "age" <= 17 +18 if ("age" > 17 OR "age" IS NULL)} delta 18
SELECT country FROM sales GROUP BY country HAVING avg(quantity) FILTER (WHERE quantity > 0) > 3
--> [country 4] f0 > 0 ~15; avg(quantity) FILTER (WHERE quantity > 0) - 3 1x-3 delta 970 in -200..970
SELECT country FROM capped_sales WHERE quantity <= 12 AND quantity > 0 GROUP BY country HAVING sum(quantity) > 500
--> [country 4] where ("quantity" <= 12 AND "quantity" > 0) f0 > 500 ~50; sum(quantity) delta 60
SELECT ward FROM visits GROUP BY ward HAVING sum(cost * age * age) > 500000
--> [ward 3] f0 > 1000000 ~100000; sum(cost * age * age) delta 121000000
SELECT ward FROM visits GROUP BY ward HAVING sum((age + 5) * cost * age) > 500000
--> [ward 3] f0 > 1000000 ~100000; sum((age + 5) * cost * age) {+1 age * age * cost if NOT (("age" IS NULL OR "cost" IS NULL)) +5 age * cost if (NOT ("age * age * cost" IS NULL) AND NOT (("age" IS NULL OR "cost" IS NULL)))} delta 126500000
SELECT ward FROM visits GROUP BY ward HAVING sum(cost * age * 0 + age) > 5000
--> [ward 3] f0 > 5000 ~500; sum(cost * age * 0 + age) delta 110
SELECT ward FROM visits GROUP BY ward HAVING count(cost * age - height) > 50
--> [ward 3] f0 > 50 ~5; count(cost * age - height) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(coalesce(height, cost * age)) > 50
--> [ward 3] f0 > 50 ~5; count(coalesce(height, cost * age)) delta 1
-- # Predicates against predicates, and quotients of integers as PostgreSQL computes them.
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 100) = (count(age) > 90)
--> [ward 3] ((f0 > 100 ~10 and f1 > 90 ~9) or (f0 <= 100 ~10 and f1 <= 90 ~9)); count(*) delta 1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 100) <> (sum(age) > 9000)
--> KH206 sum(age) else [ward 3] ((f0 > 100 ~10 and f1 <= 9000 ~900 and f2 > 49 ~5) or (f0 <= 100 ~10 and f1 > 9000 ~900)); count(*) delta 1; sum(age) delta 110; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 100) IS DISTINCT FROM (count(age) > 90)
--> [ward 3] ((f0 > 100 ~10 and f1 <= 90 ~9) or (f0 <= 100 ~10 and f1 > 90 ~9)); count(*) delta 1; count(age) delta 1
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 100) IS NOT DISTINCT FROM TRUE
--> [ward 3] f0 > 100 ~10; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING bool_and(insured) = (count(*) > 50)
--> KH206 bool_and(insured) else [ward 3] ((f0 <= 0 ~0 and f2 > 49 ~5 and f1 > 50 ~5) or (f0 > 0 ~0 and f1 <= 50 ~5)); count(*) FILTER (WHERE "insured" = false) delta 1; count(*) delta 1; count(insured) delta 1
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 20) IS UNKNOWN
--> [ward 3] false;
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) * 100.0 / count(*) > 20
--> [ward 3] f0 > 0 ~5; 100 * count(*) FILTER (WHERE insured) / count(*) - 20 {+5 if "insured" = true -1} delta 4
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) * 100 / count(*) > 20
--> KH206 count(*) else [ward 3] (f0 > -1 ~945 and f1 > 499 ~50); 100 * count(*) FILTER (WHERE insured) / count(*) - 21 {+100 if "insured" = true -21} delta 79; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING 100 * count(CASE WHEN insured THEN 1 END) / count(*) >= 20
--> KH206 100 else [ward 3] (f0 > -1 ~45 and f1 > 499 ~50); 100 * count(CASE WHEN insured THEN 1 END) / count(*) - 20 {+5 if "insured" = true -1} delta 4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING (100 * sum(CASE WHEN insured THEN 1 ELSE 0 END) / nullif(count(*), 0))::numeric < 20
--> [ward 3] f0 <= -1 ~5; 100 * sum(CASE WHEN insured THEN 1 ELSE 0 END) / count(*) - 20 {+5 if "insured" = true -1} delta 4
SELECT ward FROM visits GROUP BY ward HAVING round(100 * avg(CASE WHEN insured THEN 1 ELSE 0 END), 1) > 20
--> KH206 round(100 else [ward 3] (f0 > -1 ~18045 and f1 > 499 ~50); avg(CASE WHEN insured THEN 1 ELSE 0 END) - 0.2005 {+2000 if "insured" = true -401} delta 1599; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING avg(CASE WHEN insured THEN 1.0 ELSE 0 END) >= 0.2
--> KH206 avg(CASE else [ward 3] (f0 > -1 ~45 and f1 > 499 ~50); avg(CASE WHEN insured THEN 1.0 ELSE 0 END) - 0.2 {+5 if "insured" = true -1} delta 4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING trunc(avg(cost), 1) >= 20
--> KH206 trunc(avg(cost), else [ward 3] (f0 > -1 ~200 and f1 > 49 ~5); avg(cost) - 20 1x-40 delta 9960; count(cost) delta 1
-- # Ratios by a sum that may be 0, of groups that reach a base.
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) FILTER (WHERE insured) / sum(cost) > 0.5
--> KH206 sum(cost) else [ward 3] (f0 > 0 ~45000 and f1 > 499999 ~50000); sum(cost) FILTER (WHERE insured) / sum(cost) - 0.5 {+2 cost if "insured" = true -1 cost} delta 10000; sum(cost) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) FILTER (WHERE insured) / nullif(sum(cost), 0) > 0.5 AND sum(cost) >= 100000
--> [ward 3] (f0 > 0 ~18000 and f1 > 199999 ~20000); sum(cost) FILTER (WHERE insured) / sum(cost) - 0.5 {+2 cost if "insured" = true -1 cost} delta 10000; sum(cost) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING 100 * sum(cost) / sum(age) < 250
--> KH206 100 else [ward 3] (f0 <= -1 ~30150 and f2 > 49 ~5 and f1 > 66999 ~6700); 100 * sum(cost) / sum(age) - 250 {+1 cost -5 age} delta 10000; sum(age) delta 110; count(cost) delta 1
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / sum(age) > 0
--> KH204 sum(cost)
SELECT ward FROM visits GROUP BY ward HAVING (sum(cost) / sum(age) > 2) IS NOT TRUE
--> KH204 sum(cost)
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / -sum(age) > 0.5
--> KH204 sum(age)
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / sum(age - 60) > 0.5
--> KH206 sum(cost) else [ward 3] ((f0 > 0 ~30600 and f3 > 49 ~5 and f1 > 339999 ~34000) or (f2 > 0 ~30600 and f3 > 49 ~5 and f1 <= -340000 ~34000)); sum(cost) / sum(age - 60) - 0.5 {+1 cost -1 age +60 age^0} delta 10060; sum(age - 60) 1x-60 delta 60; -sum(cost) / -sum(age - 60) - 0.5 {-1 cost +1 age -60 age^0} delta 10060; count(age) delta 1

WITH g AS (SELECT ward, count(*) AS n FROM visits GROUP BY ward) SELECT avg(n) FROM g HAVING avg(n) > 5
--> KH110 ward,

WITH g AS (SELECT country, count(*) AS n FROM sales GROUP BY country) SELECT country FROM g WHERE n > (SELECT avg(n) FROM g HAVING count(*) > 3)
--> KH110 country,
