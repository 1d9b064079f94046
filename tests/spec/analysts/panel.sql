-- # What analysts write about households and what they buy: units that did, and units that did not.
SELECT region FROM households WHERE household_id IN (SELECT household_id FROM purchases WHERE category = 'baby') GROUP BY region HAVING count(*) > 200
--> planned

SELECT region, tenure FROM households h WHERE NOT EXISTS (SELECT 1 FROM purchases p WHERE p.household_id = h.household_id AND p.category = 'alcohol') GROUP BY region, tenure HAVING count(*) > 100
--> planned

SELECT store FROM purchases WHERE household_id IN (SELECT household_id FROM households WHERE children >= 2 AND income < 30000) GROUP BY store HAVING count(DISTINCT household_id) >= 50
--> planned

SELECT region FROM households WHERE household_id IN (SELECT household_id FROM purchases GROUP BY household_id HAVING sum(spent) > 1000) GROUP BY region HAVING count(*) > 150
--> planned

SELECT month FROM purchases WHERE household_id IN (SELECT household_id FROM purchases GROUP BY household_id HAVING count(DISTINCT store) = 1) GROUP BY month HAVING sum(spent) > 20000
--> planned

WITH heavy AS (SELECT household_id, sum(spent) AS total FROM purchases WHERE category = 'meat' GROUP BY household_id) SELECT h.region FROM households h JOIN heavy USING (household_id) GROUP BY h.region HAVING count(*) > 80
--> planned

WITH heavy AS (SELECT household_id, sum(spent) AS total FROM purchases GROUP BY household_id) SELECT region FROM households WHERE household_id IN (SELECT household_id FROM heavy WHERE total BETWEEN 500 AND 1500) GROUP BY region HAVING count(*) > 80
--> planned

SELECT h.size FROM households h LEFT JOIN purchases p ON p.household_id = h.household_id AND p.store = 'online' WHERE p.household_id IS NULL GROUP BY h.size HAVING count(*) > 60
--> planned

SELECT category FROM purchases WHERE household_id IN (SELECT household_id FROM purchases WHERE store = 'online' EXCEPT SELECT household_id FROM purchases WHERE store = 'market') GROUP BY category HAVING count(DISTINCT household_id) > 40
--> planned

SELECT region FROM households WHERE household_id IN (SELECT household_id FROM purchases WHERE month = DATE '2024-01-01' INTERSECT SELECT household_id FROM purchases WHERE month = DATE '2024-12-01') GROUP BY 1 HAVING count(*) >= 100
--> planned

SELECT region FROM households h WHERE (SELECT count(*) FROM purchases p WHERE p.household_id = h.household_id AND p.coupon) >= 5 GROUP BY region HAVING count(*) > 50
--> planned

SELECT region FROM households h WHERE (SELECT coalesce(sum(p.spent), 0) FROM purchases p WHERE p.household_id = h.household_id) < 100 GROUP BY region HAVING count(*) > 50
--> planned

SELECT tenure FROM households WHERE household_id NOT IN (SELECT household_id FROM purchases WHERE bought_on >= DATE '2024-10-01') GROUP BY tenure HAVING count(household_id) > 75
--> planned

SELECT region FROM households WHERE household_id IN (SELECT household_id FROM purchases GROUP BY household_id HAVING max(bought_on) < DATE '2024-07-01') GROUP BY region HAVING count(*) > 75
--> planned

SELECT region FROM households WHERE household_id IN (SELECT household_id FROM purchases GROUP BY household_id HAVING avg(spent) > 40 AND count(*) FILTER (WHERE coupon) = 0) GROUP BY region HAVING count(*) > 30
--> planned

SELECT store FROM purchases p WHERE EXISTS (SELECT 1 FROM households h WHERE h.household_id = p.household_id AND h.tenure = 'owner') AND (household_id IN (SELECT household_id FROM purchases WHERE category = 'baby') OR household_id IN (SELECT household_id FROM households WHERE children > 0)) GROUP BY store HAVING count(*) > 500
--> planned

SELECT month, store FROM purchases WHERE household_id IN (SELECT household_id FROM purchases WHERE category = 'produce' GROUP BY household_id, month HAVING sum(quantity) >= 20) GROUP BY month, store HAVING count(DISTINCT household_id) > 25
--> planned

SELECT region FROM households WHERE household_id IN (SELECT household_id FROM purchases GROUP BY household_id HAVING sum(spent) FILTER (WHERE store = 'discount') > 0.5 * sum(spent)) GROUP BY region HAVING count(*) > 50
--> planned

SELECT p.category FROM purchases p JOIN (SELECT DISTINCT household_id FROM purchases WHERE brand = 'Acme') a ON a.household_id = p.household_id WHERE p.brand <> 'Acme' GROUP BY p.category HAVING count(DISTINCT p.household_id) > 40
--> planned

SELECT region FROM households WHERE household_id IN (SELECT household_id FROM purchases GROUP BY household_id HAVING count(DISTINCT date_trunc('month', bought_on)) = 12) GROUP BY region HAVING count(*) > 40
--> planned

SELECT store FROM purchases WHERE month = DATE '2024-12-01' OR household_id IN (SELECT household_id FROM households WHERE size = 1) GROUP BY store HAVING count(*) > 300
--> planned

SELECT region FROM households h WHERE EXISTS (SELECT 1 FROM purchases p WHERE p.household_id = h.household_id AND p.spent > 300) AND NOT EXISTS (SELECT 1 FROM purchases p WHERE p.household_id = h.household_id AND p.coupon) GROUP BY region HAVING count(*) > 40
--> planned

SELECT store FROM purchases GROUP BY store HAVING count(*) FILTER (WHERE household_id IN (SELECT household_id FROM households WHERE size = 1)) > 300
--> planned

SELECT CASE WHEN household_id IN (SELECT household_id FROM purchases GROUP BY household_id HAVING count(*) > 3) THEN 'often' ELSE 'seldom' END AS kind, store FROM purchases GROUP BY 1, 2 HAVING count(*) > 300
--> planned

-- # values of one unit's own rows
SELECT h.region FROM households h JOIN (SELECT household_id, sum(spent) AS total FROM purchases GROUP BY household_id) p ON p.household_id = h.household_id WHERE p.total > 0.05 * h.income GROUP BY h.region HAVING count(*) > 25
--> planned

SELECT store FROM purchases p JOIN (SELECT household_id, max(spent) AS top FROM purchases GROUP BY household_id HAVING count(*) > 3) m ON m.household_id = p.household_id WHERE p.spent = m.top GROUP BY store HAVING count(*) > 25
--> planned

SELECT stores, count(*) FROM (SELECT household_id, count(DISTINCT store) AS stores FROM purchases GROUP BY household_id) q GROUP BY stores HAVING count(*) > 25
--> planned

SELECT long, h.tenure FROM households h JOIN (SELECT household_id, max(bought_on) - min(bought_on) > 180 AS long FROM purchases GROUP BY household_id) q USING (household_id) GROUP BY long, h.tenure HAVING count(*) > 25
--> planned

SELECT f.cohort, p.category FROM purchases p JOIN (SELECT household_id, min(month) AS cohort FROM purchases WHERE category = 'baby' GROUP BY 1) f ON f.household_id = p.household_id AND p.month > f.cohort GROUP BY 1, 2 HAVING count(DISTINCT p.household_id) > 25
--> planned

SELECT h.region FROM households h JOIN purchases p USING (household_id) WHERE age(p.bought_on, h.joined) > interval '18 months' GROUP BY h.region HAVING count(*) > 100
--> planned
