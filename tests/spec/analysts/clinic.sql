-- # What analysts write about a clinic's visits with public tables beside them: wards, weather, regions, drugs.
-- # columns of public tables in expressions
SELECT floor(w.avg_temp / 5) * 5 AS band FROM visits v JOIN weather w ON v.day = w.day GROUP BY 1 HAVING count(*) > 200
--> planned

SELECT CASE WHEN r.population > 100000 THEN 'large' ELSE 'small' END AS size FROM visits v JOIN wards w ON v.ward = w.ward JOIN regions r ON r.region = w.region GROUP BY 1 HAVING count(DISTINCT v.person) > 100
--> planned

SELECT left(w.name, 1) FROM visits v JOIN wards w USING (ward) GROUP BY left(w.name, 1) HAVING count(*) > 100
--> planned

SELECT upper(w.region) AS region FROM visits v JOIN wards w USING (ward) GROUP BY upper(w.region) HAVING count(*) > 100
--> planned

SELECT w.capacity / 20 * 20 AS beds, count(*) FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT extract(year FROM w.opened) AS opened FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY 1 HAVING avg(v.stay) > 6 AND count(*) > 50
--> planned

SELECT v.ward FROM visits v JOIN weather w ON v.day = w.day WHERE w.avg_temp > 20 AND v.age > 65 GROUP BY v.ward HAVING count(*) > 20
--> planned

SELECT v.ward FROM visits v JOIN weather w ON v.day = w.day GROUP BY v.ward HAVING count(*) FILTER (WHERE w.rain AND w.avg_temp < 10) > 50
--> planned

SELECT v.ward FROM visits v JOIN weather w ON v.day = w.day GROUP BY v.ward HAVING sum(CASE WHEN w.avg_temp > 15 THEN v.cost ELSE 0 END) > 10000
--> planned

SELECT v.ward FROM visits v JOIN drugs d ON v.drug = d.drug WHERE v.dose > d.max_dose GROUP BY v.ward HAVING count(*) > 20
--> planned

SELECT v.ward FROM visits v JOIN drugs d ON v.drug = d.drug GROUP BY v.ward HAVING sum(v.dose * d.weight) > 1000
--> planned

SELECT v.ward FROM visits v JOIN drugs d ON v.drug = d.drug GROUP BY v.ward HAVING count(*) FILTER (WHERE v.dose * 1.0 / d.max_dose > 0.8) > 20
--> planned

SELECT d.class, v.dose > d.max_dose AS over FROM visits v JOIN drugs d ON v.drug = d.drug GROUP BY 1, 2 HAVING count(*) > 50
--> planned

SELECT v.ward FROM visits v JOIN wards w ON v.ward = w.ward WHERE v.stay > w.target GROUP BY v.ward HAVING count(*) > 20
--> planned

SELECT w.region || ' ' || CASE WHEN w.acute THEN 'acute' ELSE 'other' END AS kind FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY 1 HAVING count(*) > 50
--> planned

SELECT w.region, floor(v.age / 10) * 10 AS decade FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY 1, 2 HAVING count(*) > 50
--> planned

SELECT date_part('year', age(v.visited, w.opened)) AS years FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY 1 HAVING count(*) > 50
--> KH202

SELECT d.class, CASE WHEN d.weight > 2 THEN 'heavy' ELSE 'light' END AS w FROM visits v JOIN drugs d ON v.drug = d.drug GROUP BY 1, 2 HAVING count(*) > 100
--> planned

SELECT v.ward FROM visits v JOIN drugs d USING (drug) WHERE v.dose < 0.8 * d.max_dose GROUP BY v.ward HAVING count(*) > 50
--> planned

SELECT w.region FROM visits v JOIN wards w ON w.ward = v.ward WHERE beds = capacity GROUP BY w.region HAVING count(*) > 50
--> planned

SELECT v.ward FROM visits v JOIN drugs d ON v.drug = d.drug GROUP BY v.ward HAVING sum(v.dose * (d.max_dose - v.dose)) > 20000
--> planned

SELECT v.ward FROM visits v JOIN drugs d ON v.drug = d.drug GROUP BY v.ward HAVING avg(v.dose / d.weight) < 10
--> planned

SELECT round((v.dose / d.weight)::numeric, 1) AS ratio FROM visits v JOIN drugs d ON v.drug = d.drug GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT w.region FROM visits v JOIN wards w ON v.ward = w.ward WHERE v.visited::date - w.opened < 3650 GROUP BY w.region HAVING count(*) > 100
--> planned

SELECT ceil(v.dose::numeric / d.max_dose) AS packs FROM visits v JOIN drugs d USING (drug) GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT floor(w.wind) AS beaufort, w.rain FROM visits v JOIN weather w USING (day) GROUP BY 1, 2 HAVING count(DISTINCT v.person) > 100
--> planned

SELECT round(w.wind::numeric, 0) AS wind FROM visits v JOIN weather w ON w.day = v.day GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT w.avg_temp, count(*) FROM visits v JOIN weather w ON w.day = v.day GROUP BY w.avg_temp HAVING count(*) > 100
--> planned

SELECT substring(d.drug, 1, 2) AS line FROM visits v JOIN drugs d ON v.drug = d.drug GROUP BY 1 HAVING count(*) > 100
--> planned

-- # every row of a public table
SELECT w.ward FROM wards w LEFT JOIN visits v ON v.ward = w.ward GROUP BY w.ward HAVING count(v.id) < 10
--> planned

SELECT w.region, count(v.person) FROM wards w LEFT JOIN visits v ON w.ward = v.ward GROUP BY w.region HAVING count(v.person) > 100
--> planned

SELECT w.ward, w.name FROM wards w LEFT OUTER JOIN visits v ON v.ward = w.ward AND v.age > 65 GROUP BY w.ward, w.name HAVING count(v.id) < 5
--> planned

SELECT v.ward FROM visits v WHERE NOT EXISTS (SELECT 1 FROM drugs d WHERE d.drug = v.drug AND d.class = 'opioid') GROUP BY v.ward HAVING count(*) > 20
--> planned

SELECT v.ward FROM visits v LEFT JOIN drugs d ON d.drug = v.drug WHERE d.drug IS NULL GROUP BY v.ward HAVING count(*) > 20
--> planned

SELECT w.ward FROM visits v RIGHT JOIN wards w ON v.ward = w.ward GROUP BY w.ward HAVING count(v.id) < 10
--> planned

SELECT w.ward FROM wards w LEFT JOIN visits v ON v.ward = w.ward GROUP BY w.ward HAVING coalesce(sum(v.cost), 0) < 1000
--> planned

SELECT d.class FROM drugs d LEFT JOIN visits v ON v.drug = d.drug GROUP BY d.class HAVING count(v.drug) > 100
--> planned

-- # totals of each unit beside a public table
SELECT w.region FROM (SELECT person, ward, sum(cost) AS s FROM visits GROUP BY person, ward) u JOIN wards w ON u.ward = w.ward GROUP BY w.region HAVING count(*) > 50
--> KH110

WITH u AS (SELECT person, ward, count(*) AS n FROM visits GROUP BY person, ward) SELECT w.region FROM u JOIN wards w ON u.ward = w.ward WHERE u.n > 2 GROUP BY w.region HAVING count(*) > 50
--> KH110

-- # ages
SELECT extract(year FROM age(DATE '2024-03-01', born)) AS age FROM visits WHERE born BETWEEN '1930-01-01' AND '2023-12-31' GROUP BY 1 HAVING count(*) > 20
--> planned

SELECT floor((current_date - born) / 365.25) AS age FROM visits WHERE born BETWEEN '1930-01-01' AND '2023-12-31' GROUP BY 1 HAVING count(*) > 20
--> KH202

SELECT date_part('year', age(date '2024-01-01', born))::int / 10 * 10 AS decade FROM visits WHERE born >= '1930-01-01' AND born < '2024-01-01' GROUP BY 1 HAVING count(*) > 20
--> planned

SELECT 10 * (age / 10) AS decade FROM visits GROUP BY 1 HAVING count(*) > 20
--> planned

SELECT extract(year FROM age(born)) AS age FROM visits WHERE born > '1930-01-01' AND born <= '2023-12-31' GROUP BY 1 HAVING count(*) > 20
--> KH202

SELECT ward FROM visits WHERE extract(year FROM age(visited, born)) >= 65 GROUP BY ward HAVING count(*) > 20
--> planned

SELECT CASE WHEN extract(year FROM age(born)) < 18 THEN 'child' WHEN extract(year FROM age(born)) < 65 THEN 'adult' ELSE 'senior' END AS g FROM visits GROUP BY 1 HAVING count(*) > 20
--> KH202

SELECT (current_date - born) / 3652 AS decade, ward FROM visits WHERE born BETWEEN '1930-01-01' AND '2023-12-31' GROUP BY 1, 2 HAVING count(*) > 20
--> KH202

-- # quotients and steps
SELECT floor(dose / beds) AS per FROM visits GROUP BY 1 HAVING count(*) > 20
--> planned

SELECT round(dose / nullif(beds, 0), 1) AS per FROM visits GROUP BY 1 HAVING count(*) > 20
--> planned

SELECT floor(cost / nullif(stay, 0) / 100) * 100 AS per_day FROM visits GROUP BY 1 HAVING count(*) > 20
--> planned

SELECT floor(dose) / 2 AS half FROM visits GROUP BY floor(dose) / 2 HAVING count(*) > 20
--> planned

SELECT dose / beds AS per FROM visits GROUP BY dose / beds HAVING count(*) > 20
--> planned

-- # thresholds of each group's own
SELECT v.ward FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY v.ward, w.target HAVING avg(v.stay) > w.target
--> planned

SELECT v.ward, w.budget FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY v.ward, w.budget HAVING sum(v.cost) > w.budget * 1.1
--> planned

SELECT w.region FROM visits v JOIN wards w ON v.ward = w.ward JOIN regions r ON r.region = w.region GROUP BY w.region, r.population HAVING count(*) > r.population * 0.01
--> planned

SELECT v.ward FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY v.ward HAVING avg(v.stay) > max(w.target)
--> planned

SELECT v.ward FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY v.ward, w.budget HAVING sum(v.cost) / w.budget > 0.9
--> planned

SELECT v.ward FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY v.ward, w.capacity HAVING count(DISTINCT v.person) * 100.0 / w.capacity > 80
--> planned

SELECT v.ward FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY v.ward HAVING avg(v.stay - w.target) > 1
--> planned

SELECT w.region FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.region HAVING sum(v.cost) > sum(w.budget) * 0.1
--> planned

SELECT v.ward FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY v.ward, w.target HAVING count(*) FILTER (WHERE v.stay > w.target) > 20
--> planned

SELECT v.ward, sum(v.cost) / w.budget AS used FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY v.ward, w.budget HAVING sum(v.cost) > w.budget ORDER BY used DESC
--> planned

SELECT ward FROM visits GROUP BY ward HAVING count(*) > 20 * (SELECT count(*) FROM wards)
--> planned

SELECT v.ward, count(*) > (SELECT avg(capacity) * 10 FROM wards) AS crowded FROM visits v GROUP BY v.ward
--> planned

SELECT ward FROM visits WHERE born < (SELECT min(opened) FROM wards WHERE acute) GROUP BY ward HAVING count(DISTINCT person) > 100
--> planned
