-- # What analysts write of tables in schemas of their source, by the names that the source gives them.
-- # text
SELECT region FROM insurance.claims GROUP BY region HAVING count(*) > 500
--> planned

SELECT c.region, count(*) AS n FROM insurance.claims c WHERE c.amount > 100 GROUP BY c.region HAVING count(*) > 500 ORDER BY n
--> planned

SELECT insurance.claims.region FROM insurance.claims WHERE insurance.claims.amount > 100 GROUP BY insurance.claims.region HAVING sum(insurance.claims.amount) > 50000
--> planned

SELECT region FROM insurer.insurance.claims GROUP BY region HAVING count(*) > 500
--> planned

SELECT region FROM "insurance"."claims" GROUP BY region HAVING count(*) > 500
--> planned

SELECT region FROM Insurance.CLAIMS GROUP BY region HAVING count(*) > 500
--> planned

SELECT claims.region FROM archive.claims GROUP BY claims.region HAVING count(*) > 500
--> planned

SELECT region FROM claims GROUP BY region HAVING count(*) > 500
--> planned

SELECT region FROM public.claims GROUP BY region HAVING count(*) > 500
--> planned

SELECT region FROM old_claims GROUP BY region HAVING count(*) > 500
--> planned

SELECT topic FROM "Call Centre"."Calls" GROUP BY topic HAVING avg(minutes) > 5
--> planned

SELECT "Calls".topic FROM "Calls" GROUP BY "Calls".topic HAVING count(*) > 500
--> planned

SELECT t.region, r.country FROM (SELECT region FROM insurance.claims GROUP BY region HAVING count(*) > 500) t JOIN insurance.regions r ON r.region = t.region ORDER BY r.country
--> planned

SELECT r.country FROM insurance.claims c JOIN insurance.regions r ON r.region = c.region GROUP BY r.country HAVING count(*) > 500
--> planned

SELECT region FROM insurance.claims WHERE region IN (SELECT region FROM insurance.regions WHERE country = 'NO') GROUP BY region HAVING count(*) > 500
--> planned

WITH big AS (SELECT region FROM insurance.claims GROUP BY region HAVING sum(amount) > 50000) SELECT * FROM big
--> planned

SELECT region FROM insurance.claims GROUP BY region HAVING count(*) > 500 UNION SELECT region FROM archive.claims GROUP BY region HAVING count(*) > 500
--> planned

SELECT region FROM insurance.claims GROUP BY region HAVING count(*) > 500 EXCEPT SELECT claims.region FROM archive.claims GROUP BY 1 HAVING count(*) > 500
--> planned

SELECT new.region FROM insurance.claims AS new JOIN archive.claims AS old ON new.holder_id = old.holder_id GROUP BY new.region HAVING count(*) > 500
--> planned

SELECT region FROM insurance.claims GROUP BY region ORDER BY count(*) DESC LIMIT 3
--> planned

SELECT region, product, count(*) FROM insurance.claims GROUP BY ROLLUP (region, product) HAVING count(*) > CASE grouping(product) WHEN 1 THEN 1000 ELSE 200 END
--> planned

SELECT DISTINCT region FROM insurance.claims GROUP BY ROLLUP (region, product) HAVING count(*) > 200
--> planned

SELECT product FROM insurance.claims GROUP BY product HAVING count(*) >= ALL (SELECT count(*) FROM insurance.claims GROUP BY product)
--> planned

SELECT product FROM insurance.claims GROUP BY product HAVING count(*) = (SELECT max(n) FROM (SELECT count(*) AS n FROM insurance.claims GROUP BY product) x)
--> planned

SELECT date_part('month', opened) AS m, product FROM (SELECT extract(month FROM opened) AS m, product, opened, row_number() OVER (PARTITION BY date_part('month', opened) ORDER BY count(*) DESC) AS place FROM insurance.claims GROUP BY extract(month FROM opened), product) x WHERE place = 1
--> KH101

SELECT m, product FROM (SELECT extract(month FROM opened) AS m, product, row_number() OVER (PARTITION BY date_part('month', opened) ORDER BY count(*) DESC) AS place FROM insurance.claims WHERE opened >= '2024-01-01' AND opened < '2025-01-01' GROUP BY extract(month FROM opened), product) x WHERE place = 1
--> planned

TABLE insurance.claims
--> KH103

SELECT * FROM insurance.claims
--> KH103

SELECT 1 FROM insurance.claims, archive.claims
--> KH107
