-- # Set operations between questions, and joins with public tables.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 INTERSECT SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000
--> [ward 3] (f0 > 40 ~4 and f1 > 4000 ~400); count(*) delta 1; sum(age) delta 110
SELECT ward FROM visits WHERE disease = 'flu' GROUP BY ward HAVING count(*) > 40 INTERSECT SELECT ward FROM visits WHERE disease = 'cold' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "disease" IN ('cold', 'flu') (f0 > 40 ~4 and f1 > 40 ~4); count(*) FILTER (WHERE disease = 'flu') delta 1; count(*) FILTER (WHERE disease = 'cold') delta 1
SELECT ward FROM visits WHERE disease = 'flu' GROUP BY ward HAVING count(*) > 40 UNION SELECT ward FROM visits WHERE disease = 'cold' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "disease" IN ('cold', 'flu') (f0 > 40 ~4 or f1 > 40 ~4); count(*) FILTER (WHERE disease = 'flu') delta 1; count(*) FILTER (WHERE disease = 'cold') delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 EXCEPT SELECT ward FROM visits WHERE insured GROUP BY ward HAVING count(*) > 40
--> [ward 3] (f0 > 100 ~10 and f1 <= 40 ~4); count(*) delta 1; count(*) FILTER (WHERE insured) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 EXCEPT SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000
--> [ward 3] (f0 > 100 ~10 and f1 <= 4000 ~400); count(*) delta 1; sum(age) delta 110
SELECT ward FROM visits WHERE age > 65 GROUP BY ward HAVING count(*) > 40 UNION SELECT ward FROM visits WHERE age > 65 AND insured GROUP BY ward HAVING count(*) > 20
--> [ward 3] where "age" > 65 (f0 > 40 ~4 or f1 > 20 ~2); count(*) delta 1; count(*) FILTER (WHERE insured) delta 1
(SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 UNION SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000) INTERSECT SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 65
--> [ward 3] ((f0 > 40 ~4 or f1 > 4000 ~400) and f2 > 0 ~325); count(*) delta 1; sum(age) delta 110; avg(age) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 UNION SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000 INTERSECT SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 65
--> [ward 3] (f0 > 40 ~4 or (f1 > 4000 ~400 and f2 > 0 ~325)); count(*) delta 1; sum(age) delta 110; avg(age) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 UNION ALL SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000
--> [ward 3] f0 > 40 ~4; count(*) delta 1 & [ward 3] f0 > 4000 ~400; sum(age) delta 110
SELECT ward FROM visits WHERE ward = 'A' GROUP BY ward HAVING count(*) > 40 UNION SELECT ward FROM visits WHERE ward = 'B' GROUP BY ward HAVING count(*) > 60
--> [ward 1] f0 > 40 ~4; count(*) delta 1 & [ward 1] f0 > 60 ~6; count(*) delta 1
SELECT ward FROM visits WHERE ward <> 'C' GROUP BY ward HAVING count(*) > 40 INTERSECT SELECT ward FROM visits WHERE ward <> 'A' GROUP BY ward HAVING count(*) > 60
--> [ward 1] (f0 > 40 ~4 and f0 > 60 ~6); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 UNION SELECT country FROM sales GROUP BY country HAVING count(*) > 400
--> [ward 3] f0 > 40 ~4; count(*) delta 1 & [country 4] f0 > 400 ~40; count(*) delta 100 in 0..100
SELECT country FROM sales GROUP BY country HAVING count(*) > 400 EXCEPT SELECT country FROM sales GROUP BY country HAVING sum(amount) > 10000
--> [country 4] (f0 > 400 ~40 and f1 <= 1000000 ~100000); count(*) delta 100 in 0..100; sum(amount) delta 150000 in -100000..150000
SELECT country FROM sales JOIN regions ON country = name GROUP BY country HAVING count(*) > 400
--> [country 4] f0 > 400 ~40; count(*) delta 100 in 0..100
SELECT country FROM sales s JOIN regions r ON s.country = r.name WHERE r.region = 'West' GROUP BY country HAVING count(*) > 400
--> [country 2] f0 > 400 ~40; count(*) delta 100 in 0..100
SELECT country FROM sales s LEFT JOIN regions r ON s.country = r.name WHERE r.region IS NULL GROUP BY country HAVING count(*) > 400
--> [country 0] f0 > 400 ~40; count(*) delta 100 in 0..100
SELECT r.region FROM sales s JOIN regions r ON s.country = r.name GROUP BY r.region HAVING count(*) > 400
--> [region 3] f0 > 400 ~40; count(*) delta 100 in 0..100
SELECT region, month FROM sales, regions WHERE country = name GROUP BY 1, 2 HAVING count(*) FILTER (WHERE region <> 'North') > 400
--> [region 3, month 13] f0 > 400 ~40; count(*) FILTER (WHERE region <> 'North') delta 100 in 0..100
SELECT country FROM sales JOIN regions ON country = name GROUP BY country HAVING count(*) FILTER (WHERE region = 'West') > 400
--> [country 4] f0 > 400 ~40; count(*) FILTER (WHERE region = 'West') delta 100 in 0..100
SELECT country FROM sales JOIN regions ON country = region GROUP BY country HAVING count(*) > 400
--> KH107 country
SELECT region FROM sales JOIN regions ON country = name GROUP BY region HAVING sum(amount) > 10000 AND count(DISTINCT customer_id) > 30
--> [region 3] (f0 > 1000000 ~100000 and f1 > 30 ~3); sum(amount) delta 150000 in -100000..150000; count(DISTINCT customer_id) delta 1 in 0..1
SELECT country FROM (SELECT country, sum(amount) AS total FROM sales GROUP BY country) v WHERE total > 500 GROUP BY country HAVING count(*) > 20
--> KH110 country)
