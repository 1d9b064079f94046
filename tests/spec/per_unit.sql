-- # Questions over a subquery or WITH query that adds up each unit: what is summed, in which steps, or the code.
-- # the whole FROM as a subquery
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays WHERE age > 40 GROUP BY 1, 2) v WHERE n > 3 AND total BETWEEN 10 AND 500 GROUP BY ward HAVING count(*) > 100
--> n = count(*) in 0..20; total = sum(cost) in 0..2000; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING count(*) > 100
--> count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n > 3 GROUP BY ward HAVING count(DISTINCT patient_id) > 100
--> n = count(*) in 0..20; count(DISTINCT patient_id) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING count(*) FILTER (WHERE n > 3) > 100 AND count(*) FILTER (WHERE n <= 3) > 50
--> n = count(*) in 0..20; count(*) FILTER (WHERE n <= 3) by 1; count(*) FILTER (WHERE n > 3) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING sum(n) > 1000
--> n = count(*) in 0..20; sum(n) by 20
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING sum(total) > 100000
--> total = sum(cost) in 0..2000; sum(total) by 2000
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING avg(n) > 2.5
--> n = count(*) in 0..20; avg(n) - 2.5 by 35
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING avg(total) > 80
--> total = sum(cost) in 0..2000; avg(total) - 80 by 1840
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING 100.0 * count(*) FILTER (WHERE n > 3) / count(*) > 20
--> n = count(*) in 0..20; 100 * count(*) FILTER (WHERE n > 3) / count(*) - 20 by 4
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING max(n) > 10
--> n = count(*) in 0..20; count(*) FILTER (WHERE "n" > 10) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY n) > 3
--> n = count(*) in 0..20; count(*) FILTER (WHERE "n" > 3) - 0.5 * count(*) FILTER (WHERE NOT ("n" IS NULL)) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING sum(n) > 1000 OR sum(total) > 100000
--> n = count(*) in 0..20; total = sum(cost) in 0..2000; sum(n) by 20; sum(total) by 2000
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING count(total) > 100
--> total = sum(cost) in 0..2000; count(total) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING count(*) FILTER (WHERE total IS NULL) > 100
--> total = sum(cost) in 0..2000; count(*) FILTER (WHERE total IS NULL) by 1
SELECT v.ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE v.n >= 2.5 AND v.patient_id <> 7 GROUP BY v.ward HAVING count(v.n) > 100 ORDER BY v.ward LIMIT 5
--> n = count(*) in 0..20; count(n) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE ward IN ('A', 'B') GROUP BY ward HAVING count(*) > 100
--> count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n % 2 = 0 GROUP BY ward HAVING count(*) > 100
--> n = count(*) in 0..20; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n * n > 3 GROUP BY ward HAVING count(*) > 100
--> n = count(*) in 0..20; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE total > n GROUP BY ward HAVING count(*) > 100
--> n = count(*) in 0..20; total = sum(cost) in 0..2000; count(*) by 1
SELECT w FROM (SELECT s.ward AS w, s.patient_id AS p, count(*) AS n FROM stays s GROUP BY s.ward, s.patient_id) v WHERE n > 3 GROUP BY w HAVING count(DISTINCT p) > 100
--> n = count(*) in 0..20; count(DISTINCT p) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) FROM stays GROUP BY 1, 2) v WHERE count > 3 GROUP BY ward HAVING count(*) > 100
--> count = count(*) in 0..20; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id FROM stays GROUP BY 1, 2) v GROUP BY ward HAVING count(*) > 100
--> count(*) by 1
SELECT ward FROM (SELECT ward FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING count(*) > 100
--> count(*) by 1
SELECT ward FROM (SELECT ward, patient_id FROM stays GROUP BY 1, 2 HAVING count(*) > 3 AND sum(cost) BETWEEN 10 AND 500) v GROUP BY ward HAVING count(*) > 100
--> count(*) in 0..20; sum(cost) in 0..2000; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id FROM stays GROUP BY 1, 2 HAVING NOT (count(*) <= 3) OR ward = 'A') v GROUP BY ward HAVING count(*) > 100
--> count(*) in 0..20; count(*) by 1
SELECT ward, day FROM (SELECT ward, day, patient_id, count(*) AS n FROM stays GROUP BY 1, 2, 3) v WHERE n > 1 AND day > '2026-01-03' GROUP BY ward, day HAVING count(*) > 100
--> n = count(*) in 0..20; count(*) by 1
SELECT day FROM (SELECT arrived::date AS day, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) v WHERE n > 1 GROUP BY 1 HAVING count(*) > 100
--> n = count(*) in 0..20; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) FILTER (WHERE insured) AS n, sum(age) FILTER (WHERE age > 65) AS old FROM stays GROUP BY 1, 2) v WHERE n >= 1 GROUP BY ward HAVING sum(old) > 1000
--> n = count(*) FILTER (WHERE insured) in 0..20; old = sum(age) FILTER (WHERE age > 65) in 0..220; sum(old) by 220
SELECT ward FROM (SELECT ward, patient_id, coalesce(sum(cost), 0) AS total FROM stays GROUP BY 1, 2) v WHERE total < 5 GROUP BY ward HAVING count(*) > 100
--> total = coalesce(sum(cost), 0) in 0..2000; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, sum(CASE WHEN insured THEN cost ELSE 0 END) AS total FROM stays GROUP BY 1, 2) v WHERE total < 5 GROUP BY ward HAVING count(*) > 100
--> total = sum(CASE WHEN insured THEN cost ELSE 0 END) in 0..2000; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, sum(age - cost) AS total FROM stays GROUP BY 1, 2) v WHERE total < 5 GROUP BY ward HAVING count(*) > 100
--> total = sum(age - cost) in -2000..440; count(*) by 1
-- # rows capped
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM capped GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING sum(n) > 100 AND sum(total) > 1000
--> n = count(*) in 0..4; total = sum(cost) in 0..4000; sum(n) by 4; sum(total) by 4000
SELECT ward FROM (SELECT ward, patient_id, sum(height) AS total FROM capped GROUP BY 1, 2) v WHERE total > 1.75 GROUP BY ward HAVING count(*) > 100
--> total = sum(height) in 0..120; count(*) by 1
-- # the privacy unit contains a key
SELECT country, month FROM (SELECT country, customer_id, month, sum(amount) AS total FROM sales GROUP BY 1, 2, 3) v WHERE total > 300 GROUP BY country, month HAVING count(*) > 20
--> total = sum(amount) in -100000..150000; count(*) by 1
SELECT country FROM (SELECT country, customer_id, sum(amount) AS total FROM sales WHERE month = '2011-03-01' GROUP BY 1, 2) v WHERE total > 300 GROUP BY country HAVING count(*) > 20
--> total = sum(amount) in -100000..150000; count(*) by 1
SELECT month FROM (SELECT month, customer_id, count(*) AS n FROM sales GROUP BY 1, 2) v WHERE n > 3 GROUP BY month HAVING count(*) > 20
--> n = count(*) in 0..100; count(*) by 1
-- # WITH queries
WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) SELECT ward FROM v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> n = count(*) in 0..20; count(*) by 1
WITH v AS MATERIALIZED (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2), q AS (SELECT x.ward FROM v AS x WHERE x.n > 3 GROUP BY x.ward HAVING count(*) > 100) SELECT * FROM q
--> n = count(*) in 0..20; count(*) by 1
WITH regions AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) SELECT ward FROM regions WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> n = count(*) in 0..20; count(*) by 1
WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) SELECT ward FROM v GROUP BY ward HAVING count(*) > 100 UNION ALL SELECT ward FROM v WHERE n > 3 GROUP BY ward HAVING count(*) > 50
--> count(*) by 1 // n = count(*) in 0..20; count(*) by 1
-- # refused
WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) SELECT * FROM v
--> KH101
WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) SELECT ward FROM v WHERE n > (SELECT max(n) FROM v) GROUP BY ward HAVING count(*) > 100
--> KH103
WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2), w AS (SELECT * FROM v) SELECT ward FROM v GROUP BY ward HAVING count(*) > 100
--> KH103
WITH v (a, b, c) AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) SELECT a FROM v GROUP BY a HAVING count(*) > 100
--> KH110
WITH RECURSIVE v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) SELECT ward FROM v GROUP BY ward HAVING count(*) > 100
--> KH110
WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) SELECT ward FROM v WHERE n IN (WITH v AS (SELECT 1 AS n) SELECT n FROM v) GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, count(*) AS n FROM stays GROUP BY ward) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, day, patient_id, count(*) AS n FROM stays GROUP BY 1, 2, 3) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT country FROM (SELECT country, customer_id, sum(amount) AS total FROM sales GROUP BY 1, 2) v WHERE total > 300 GROUP BY country HAVING count(*) > 20
--> KH110
SELECT ward FROM (SELECT ward, visit_id, count(*) AS n FROM visits GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, patient_id, max(cost) AS top FROM stays GROUP BY 1, 2) v WHERE top > 3 GROUP BY ward HAVING count(*) > 100
--> top = max(cost) in 0..1000; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, avg(cost) AS mean FROM stays GROUP BY 1, 2) v WHERE mean > 3 GROUP BY ward HAVING count(*) > 100
--> mean = avg(cost) in 0..20000000; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(DISTINCT age) AS n FROM stays GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> n = count(DISTINCT age) in 0..20; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(DISTINCT arrived::date) FILTER (WHERE insured) AS days FROM stays GROUP BY 1, 2) v GROUP BY ward HAVING count(*) FILTER (WHERE days >= 3) > 100 AND avg(days) > 2
--> days = count(DISTINCT day) FILTER (WHERE insured) in 0..20; avg(days) - 2 by 18; count(*) FILTER (WHERE days >= 3) by 1
SELECT ward FROM (SELECT ward, patient_id FROM stays GROUP BY 1, 2 HAVING count(DISTINCT day) >= 3) v GROUP BY ward HAVING count(*) > 100
--> count(DISTINCT day) in 0..20; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(DISTINCT day) AS days FROM capped GROUP BY 1, 2) v GROUP BY ward HAVING sum(days) > 100
--> days = count(DISTINCT day) in 0..4; sum(days) by 4
SELECT ward FROM (SELECT ward, patient_id, count(DISTINCT height) AS n FROM stays GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, patient_id, count(DISTINCT patient_id) AS n FROM stays GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, patient_id, count(DISTINCT date_trunc('month', arrived)) AS n FROM stays GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> n = count(DISTINCT date_trunc('MONTH', arrived)) in 0..20; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(DISTINCT height * 2) AS n FROM stays GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, patient_id, count(*) * 2 AS n FROM stays GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> count(*) in 0..20; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, upper(ward), count(*) AS n FROM stays GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, patient_id, sum(height) AS total FROM stays GROUP BY 1, 2) v WHERE total > 3 GROUP BY ward HAVING count(*) > 100
--> KH203
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) v JOIN regions ON ward = name WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM regions JOIN (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) v ON ward = name WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays JOIN regions ON ward = name GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays WHERE age > (SELECT 1) GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 10) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT * FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) u) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH101
SELECT ward, count(*) FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH101
SELECT ward, n FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> KH101
SELECT n FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY n HAVING count(*) > 100
--> KH202
SELECT patient_id FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY patient_id HAVING count(*) > 100
--> KH202
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n > 3 GROUP BY ward
--> KH104
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n > 3 HAVING count(*) > 100
--> KH105
SELECT * FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v
--> KH101
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE age > 3 GROUP BY ward HAVING count(*) > 100
--> KH201
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE stays.n > 3 GROUP BY ward HAVING count(*) > 100
--> KH201
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING sum(age) > 100
--> KH201
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING avg(n) <= 2.5
--> KH206
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n LIKE 'x' GROUP BY ward HAVING count(*) > 100
--> KH212
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n > 'many' GROUP BY ward HAVING count(*) > 100
--> KH212
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2 HAVING n > 3) v GROUP BY ward HAVING count(*) > 100
--> KH201
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) v (a, b, c) GROUP BY a HAVING count(*) > 100
--> KH110
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY ROLLUP (1, 2)) v GROUP BY ward HAVING count(*) > 100
--> KH101
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n = ANY (ARRAY[1, 2]) AND n * 2 > 3 GROUP BY ward HAVING count(*) > 100
--> n = count(*) in 0..20; count(*) by 1
-- # retention: units in both of two periods
SELECT ward FROM (SELECT ward, patient_id, count(*) FILTER (WHERE day < '2026-01-05') AS before, count(*) FILTER (WHERE day >= '2026-01-05') AS after FROM stays GROUP BY ward, patient_id) v WHERE before > 0 AND after > 0 GROUP BY ward HAVING count(*) > 100
--> after = count(*) FILTER (WHERE day >= '2026-01-05') in 0..20; before = count(*) FILTER (WHERE day < '2026-01-05') in 0..20; count(*) by 1
SELECT ward FROM (SELECT ward, patient_id, count(*) FILTER (WHERE day < '2026-01-05') AS before, count(*) FILTER (WHERE day >= '2026-01-05') AS after FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING 100.0 * count(*) FILTER (WHERE before > 0 AND after > 0) / nullif(count(*) FILTER (WHERE before > 0), 0) > 30
--> after = count(*) FILTER (WHERE day >= '2026-01-05') in 0..20; before = count(*) FILTER (WHERE day < '2026-01-05') in 0..20; 100 * count(*) FILTER (WHERE before > 0 AND after > 0) / count(*) FILTER (WHERE before > 0) - 30 by 7
SELECT ward FROM (SELECT ward, patient_id, count(*) FILTER (WHERE day < '2026-01-05') AS before, count(*) FILTER (WHERE day >= '2026-01-05') AS after FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING avg(CASE WHEN after > 0 THEN 1.0 ELSE 0 END) FILTER (WHERE before > 0) > 0.3
--> after = count(*) FILTER (WHERE day >= '2026-01-05') in 0..20; before = count(*) FILTER (WHERE day < '2026-01-05') in 0..20; avg(CASE WHEN after > 0 THEN 1.0 ELSE 0 END) FILTER (WHERE before > 0) - 0.3 by 7
SELECT ward FROM (SELECT ward, patient_id, count(*) FILTER (WHERE day < '2026-01-05') AS before, count(*) FILTER (WHERE day >= '2026-01-05') AS after FROM stays GROUP BY ward, patient_id) v GROUP BY ward HAVING count(*) FILTER (WHERE before > 0 AND after > 0) > 0.5 * count(*) FILTER (WHERE before > 0)
--> after = count(*) FILTER (WHERE day >= '2026-01-05') in 0..20; before = count(*) FILTER (WHERE day < '2026-01-05') in 0..20; count(*) FILTER (WHERE before > 0 AND after > 0) - 0.5 * count(*) FILTER (WHERE before > 0) by 1
SELECT ward FROM (SELECT ward, patient_id FROM stays GROUP BY 1, 2 HAVING count(*) FILTER (WHERE day < '2026-01-05') > 0 AND count(*) FILTER (WHERE day >= '2026-01-05') > 0) v GROUP BY ward HAVING count(*) > 100
--> count(*) FILTER (WHERE day < '2026-01-05') in 0..20; count(*) FILTER (WHERE day >= '2026-01-05') in 0..20; count(*) by 1
