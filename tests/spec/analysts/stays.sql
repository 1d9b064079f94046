-- # What analysts write about a hospital's stays, patients protected, by the families of docs/asking.md.
-- # numbers
SELECT ward, count(*) AS stays FROM stays GROUP BY ward HAVING count(*) > 500 ORDER BY stays DESC
--> planned

SELECT ward, AVG(cost) AS avg_cost FROM stays GROUP BY ward HAVING AVG(cost) > 3000 ORDER BY avg_cost DESC
--> planned

SELECT insurer, ward, COUNT(DISTINCT patient_id) AS patients, SUM(cost) AS total FROM stays GROUP BY insurer, ward HAVING COUNT(DISTINCT patient_id) >= 100
--> planned

SELECT ward, round(avg(age), 1) AS mean_age, count(*) n FROM stays GROUP BY 1 HAVING count(*) > 200 ORDER BY 2 DESC
--> planned

WITH per_ward AS (SELECT ward, count(*) AS n, sum(cost) AS s FROM stays GROUP BY ward) SELECT ward, n, s FROM per_ward WHERE n > 300
--> planned

SELECT month, count(DISTINCT patient_id) AS patients FROM stays WHERE emergency GROUP BY month HAVING count(DISTINCT patient_id) > 80 ORDER BY month
--> planned

SELECT q.ward, q.n FROM (SELECT ward, count(*) AS n FROM stays GROUP BY ward) q WHERE q.n BETWEEN 200 AND 900 ORDER BY q.n
--> planned

SELECT ward, triage, count(*)::int AS n, max(cost) AS worst FROM stays GROUP BY ward, triage HAVING count(*) > 100
--> planned

-- # key
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS age_group, ward FROM stays GROUP BY 1, 2 HAVING count(DISTINCT patient_id) > 50
--> planned

SELECT age / 10 * 10 AS decade FROM stays GROUP BY 1 HAVING count(DISTINCT patient_id) > 100
--> planned

SELECT floor(age / 10.0) AS decade, sex FROM stays GROUP BY floor(age / 10.0), sex HAVING count(DISTINCT patient_id) > 60
--> planned

SELECT age >= 65 AS senior, ward FROM stays GROUP BY age >= 65, ward HAVING count(*) > 150
--> planned

SELECT extract(isodow FROM admitted) AS weekday FROM stays GROUP BY 1 HAVING count(DISTINCT patient_id) > 300
--> planned

SELECT extract(hour FROM admitted) AS h, ward FROM stays WHERE ward IN ('emergency', 'maternity') GROUP BY 1, 2 HAVING count(*) > 40
--> planned

SELECT admitted::date AS day FROM stays WHERE admitted >= '2024-03-01' AND admitted < '2024-04-01' GROUP BY 1 HAVING count(DISTINCT patient_id) > 30
--> planned

SELECT date_trunc('week', admitted) AS week, count(*) FROM stays WHERE admitted >= DATE '2024-01-01' AND admitted < DATE '2024-07-01' GROUP BY week HAVING count(*) > 100 ORDER BY week
--> planned

SELECT to_char(month, 'YYYY-MM') AS m FROM stays GROUP BY 1 HAVING count(*) > 400
--> planned

SELECT date_part('year', month) AS y, ward FROM stays GROUP BY 1, 2 HAVING sum(cost) > 2000000
--> planned

SELECT width_bucket(cost, 0, 50000, 10) AS cost_band FROM stays GROUP BY 1 HAVING count(*) > 50
--> planned

SELECT width_bucket(age, ARRAY[18, 40, 65, 80]) AS band, sex FROM stays GROUP BY 1, 2 HAVING count(DISTINCT patient_id) > 80
--> planned

SELECT coalesce(insurer, 'unknown') AS insurer FROM stays GROUP BY 1 HAVING count(*) > 200
--> planned

SELECT left(ward, 1) AS initial FROM stays GROUP BY left(ward, 1) HAVING count(DISTINCT patient_id) > 200
--> planned

SELECT upper(ward) AS ward FROM stays GROUP BY upper(ward) HAVING count(*) > 300
--> planned

SELECT CASE ward WHEN 'surgery' THEN 'theatre' WHEN 'cardiology' THEN 'theatre' ELSE 'beds' END AS kind FROM stays GROUP BY 1 HAVING avg(cost) > 4000 AND count(*) > 100
--> planned

SELECT CASE WHEN triage <= 2 THEN 'urgent' ELSE 'routine' END AS urgency, emergency FROM stays GROUP BY 1, 2 HAVING count(*) > 250
--> planned

SELECT emergency, readmitted FROM stays GROUP BY emergency, readmitted HAVING count(DISTINCT patient_id) > 100
--> planned

SELECT diagnosis LIKE 'I%' AS heart, ward FROM stays GROUP BY 1, 2 HAVING count(*) > 60
--> planned

SELECT CASE WHEN diagnosis IN ('J18', 'J44') THEN 'lung' WHEN diagnosis LIKE 'I%' THEN 'heart' END AS organ FROM stays GROUP BY 1 HAVING count(DISTINCT patient_id) > 50
--> planned

SELECT least(beds_moved, 3) AS moves FROM stays GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT extract(quarter FROM admitted) AS q, extract(year FROM month) AS y FROM stays GROUP BY 1, 2 HAVING count(DISTINCT patient_id) > 300
--> planned

SELECT cost > 10000 AS dear, insurer FROM stays GROUP BY 1, 2 HAVING count(*) > 100
--> planned

-- # row
SELECT ward FROM stays WHERE discharged - admitted > interval '7 days' GROUP BY ward HAVING count(*) > 50
--> planned

SELECT ward FROM stays WHERE discharged::date = admitted::date GROUP BY ward HAVING count(*) > 50
--> planned

SELECT ward FROM stays WHERE extract(epoch FROM discharged - admitted) / 3600 < 24 GROUP BY ward HAVING count(*) > 50
--> planned

SELECT ward FROM stays WHERE cost > 1000 * beds_moved GROUP BY ward HAVING count(*) > 100
--> planned

SELECT ward FROM stays WHERE lower(trim(diagnosis)) = 'i21' GROUP BY ward HAVING count(DISTINCT patient_id) > 20
--> planned

SELECT ward FROM stays WHERE extract(year FROM age(admitted, born)) >= 80 GROUP BY ward HAVING count(DISTINCT patient_id) > 50
--> planned

SELECT month FROM stays WHERE extract(isodow FROM admitted) IN (6, 7) GROUP BY month HAVING count(*) > 80
--> planned

SELECT ward FROM stays WHERE extract(hour FROM admitted) >= 22 OR extract(hour FROM admitted) < 6 GROUP BY ward HAVING count(*) > 80
--> planned

SELECT ward FROM stays WHERE left(diagnosis, 1) = 'C' GROUP BY ward HAVING count(DISTINCT patient_id) > 30
--> planned

SELECT ward FROM stays WHERE length(diagnosis) > 3 AND cost / nullif(beds_moved, 0) > 2000 GROUP BY ward HAVING count(*) > 30
--> planned

SELECT ward, avg(extract(epoch FROM discharged - admitted) / 86400) AS los FROM stays GROUP BY ward HAVING avg(extract(epoch FROM discharged - admitted) / 86400) > 4
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(discharged::date - admitted::date) > 5
--> planned

SELECT ward FROM stays WHERE abs(age - 40) <= 10 GROUP BY ward HAVING count(*) > 100
--> planned

SELECT ward FROM stays GROUP BY ward HAVING sum(CASE WHEN discharged > admitted + interval '30 days' THEN 1 ELSE 0 END) > 20
--> planned

SELECT ward FROM stays WHERE admitted - born < interval '28 days' GROUP BY ward HAVING count(*) > 20
--> planned

-- # guard
SELECT ward FROM stays GROUP BY ward HAVING avg(cost) >= 3000
--> planned

SELECT ward FROM stays GROUP BY ward HAVING round(avg(age)) > 60
--> planned

SELECT ward FROM stays GROUP BY ward HAVING min(age) >= 18
--> planned

SELECT ward FROM stays GROUP BY ward HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY cost) > 2500
--> planned

SELECT ward FROM stays GROUP BY ward HAVING stddev(cost) > 4000
--> planned

SELECT ward FROM stays GROUP BY ward HAVING 100.0 * count(*) FILTER (WHERE readmitted) / count(*) > 12
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(CASE WHEN readmitted THEN 1.0 ELSE 0 END) >= 0.15
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(cost) FILTER (WHERE sex = 'f') > avg(cost) FILTER (WHERE sex = 'm')
--> planned

SELECT ward FROM stays GROUP BY ward HAVING sum(cost) / count(DISTINCT patient_id) > 5000
--> planned

SELECT ward FROM stays GROUP BY ward HAVING (count(*) > 300) <> (avg(age) > 50)
--> planned

SELECT ward FROM stays GROUP BY ward HAVING max(age) < 20
--> planned

SELECT ward FROM stays GROUP BY ward HAVING count(*) * 1.0 / count(DISTINCT patient_id) > 1.5
--> planned

SELECT ward FROM stays GROUP BY ward HAVING bool_or(cost > 45000)
--> planned

-- # rank
SELECT ward FROM stays GROUP BY ward ORDER BY count(*) DESC LIMIT 3
--> planned

SELECT ward, avg(cost) FROM stays GROUP BY ward HAVING count(*) > 100 ORDER BY avg(cost) DESC LIMIT 3
--> planned

SELECT ward, month FROM (SELECT ward, month, rank() OVER (PARTITION BY month ORDER BY count(*) DESC) AS r FROM stays GROUP BY ward, month) x WHERE r = 1
--> planned

SELECT insurer, ward FROM (SELECT insurer, ward, row_number() OVER (PARTITION BY insurer ORDER BY sum(cost) DESC) AS rn FROM stays GROUP BY 1, 2) t WHERE rn <= 2
--> planned

SELECT ward FROM stays GROUP BY ward ORDER BY count(DISTINCT patient_id) DESC FETCH FIRST 2 ROWS ONLY
--> planned

SELECT ward, ntile(3) OVER (ORDER BY count(*)) AS third FROM stays GROUP BY ward
--> planned

SELECT ward, month FROM stays GROUP BY ROLLUP (ward, month) HAVING count(*) > 200
--> planned

SELECT ward, dense_rank() OVER (ORDER BY sum(cost) DESC) <= 3 AS top FROM stays GROUP BY ward
--> planned

-- # text
SELECT month, CASE WHEN count(*) > 400 AND lag(count(*) > 400) OVER (ORDER BY month) THEN 'again' END AS twice FROM stays GROUP BY month
--> planned

SELECT ward, count(*) > 300 AS busy, avg(age) > 60 AS old FROM stays GROUP BY ward
--> planned

SELECT count(*) FROM (SELECT ward FROM stays GROUP BY ward HAVING count(*) > 300) busy
--> planned
SELECT ward FROM stays GROUP BY ward HAVING avg(discharged - admitted) FILTER (WHERE discharged - admitted BETWEEN interval '0 days' AND interval '60 days') > interval '3 days 12 hours'
--> planned
SELECT ward FROM stays WHERE discharged - admitted BETWEEN interval '0 days' AND interval '60 days' GROUP BY ward HAVING avg(discharged - admitted) FILTER (WHERE emergency) > 1.2 * avg(discharged - admitted)
--> planned
SELECT ward, sum(discharged - admitted) AS bed_days FROM stays WHERE discharged - admitted BETWEEN interval '0 days' AND interval '60 days' GROUP BY ward ORDER BY bed_days DESC LIMIT 2
--> planned
SELECT ward FROM stays WHERE discharged::date - admitted::date BETWEEN 0 AND 60 GROUP BY ward HAVING avg(discharged::date - admitted::date) > 5
--> planned
SELECT ward FROM stays GROUP BY ward HAVING avg(discharged - admitted) > 3
--> KH204
SELECT ward FROM stays WHERE cost IS NOT NULL AND age IS NOT NULL GROUP BY ward HAVING avg(cost) / nullif(avg(age), 0) > 100
--> planned
SELECT ward FROM stays GROUP BY ward HAVING avg(triage) FILTER (WHERE emergency) / avg(triage) > 1.5
--> planned
SELECT ward FROM stays GROUP BY ward HAVING (sum(cost) * 1.0 / count(*)) / (sum(age) * 1.0 / count(*)) > 30
--> planned
SELECT ward FROM stays GROUP BY ward HAVING avg(cost) FILTER (WHERE triage = 1) / avg(cost) > 1.5
--> KH204

SELECT ward FROM stays GROUP BY ward HAVING avg(discharged - admitted) > interval '5 days'
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(extract(epoch from discharged - admitted))/86400 > 5
--> planned

SELECT ward FROM stays WHERE admitted >= '2024-01-01' AND discharged < '2024-07-01' AND discharged >= admitted GROUP BY ward HAVING avg(discharged::date - admitted::date) > 5
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(current_date - born) > 365 * 60
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(extract(year from age(admitted, born))) > 60
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(CASE WHEN readmitted THEN discharged::date - admitted::date ELSE 0 END) > 2
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(coalesce(discharged::date, current_date) - admitted::date) > 6
--> planned

SELECT ward FROM stays GROUP BY ward HAVING sum(cost / nullif(discharged::date - admitted::date, 0)) > 5000
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(cost / nullif(discharged::date - admitted::date, 0)) > 500
--> planned

SELECT ward FROM stays GROUP BY ward HAVING sum(cost) / sum(discharged::date - admitted::date) > 500
--> planned

SELECT ward FROM stays GROUP BY ward HAVING avg(discharged::date - admitted::date) FILTER (WHERE emergency) > avg(discharged::date - admitted::date) FILTER (WHERE NOT emergency)
--> KH203

SELECT ward, avg(discharged::date - admitted::date) AS los FROM stays GROUP BY ward ORDER BY los DESC LIMIT 3
--> KH203

SELECT ward, width_bucket(avg(discharged::date - admitted::date), ARRAY[3, 5, 8]) AS los FROM stays GROUP BY ward
--> planned

WITH s AS (SELECT ward, discharged::date - admitted::date AS days FROM stays) SELECT ward FROM s WHERE days >= 0 GROUP BY ward HAVING avg(days) > 140
--> planned

SELECT ward FROM stays GROUP BY ward HAVING stddev(discharged::date - admitted::date) > 4
--> KH203

-- # further
SELECT CASE WHEN discharged - admitted < interval '1 day' THEN 'day case' WHEN discharged - admitted <= interval '7 days' THEN 'short' ELSE 'long' END AS los_band, ward FROM stays WHERE discharged IS NOT NULL GROUP BY 1, 2 HAVING count(*) >= 50
--> planned

SELECT extract(year FROM admitted + interval '3 months')::int AS fiscal_year, count(DISTINCT patient_id) FROM stays WHERE admitted >= '2023-01-01' AND admitted < '2025-01-01' GROUP BY 1 HAVING count(DISTINCT patient_id) > 500
--> planned

SELECT to_char(admitted, 'IYYY-"W"IW') AS iso_week, count(*) FROM stays WHERE admitted BETWEEN '2024-01-01' AND '2024-06-30' GROUP BY 1 HAVING count(*) > 60 ORDER BY 1
--> planned

SELECT width_bucket(age, 0, 100, 10) AS decile, sex, count(DISTINCT patient_id) AS patients FROM stays GROUP BY decile, sex HAVING count(DISTINCT patient_id) > 40
--> planned

SELECT left(diagnosis, 1) AS chapter FROM stays WHERE diagnosis IN ('I21', 'I50', 'J18', 'J44', 'C50') GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT coalesce(insurer, 'all insurers') AS payer, coalesce(ward, 'all wards') AS unit, count(*) FROM stays GROUP BY ROLLUP (insurer, ward) HAVING count(*) > 400
--> planned

SELECT CASE WHEN grouping(ward) = 1 THEN 'Total' ELSE ward END AS ward, count(*) AS n FROM stays GROUP BY ROLLUP (ward) HAVING count(*) > 300
--> planned

SELECT CASE WHEN ward IS NULL THEN 'Total' ELSE ward END AS ward, count(*) AS n FROM stays GROUP BY ROLLUP (ward) HAVING count(*) > 300
--> planned

SELECT age >= 65 AND emergency AS frail, count(*) FROM stays GROUP BY age >= 65 AND emergency HAVING count(*) > 200
--> planned

SELECT ward FROM stays WHERE extract(isodow FROM discharged) IN (6, 7) AND discharged::time < '10:00' GROUP BY ward HAVING count(*) > 40
--> planned

SELECT ward, count(*) FROM stays WHERE cost > 1000 * greatest(discharged::date - admitted::date, 1) GROUP BY ward HAVING count(*) > 100
--> planned

SELECT insurer FROM stays WHERE diagnosis ILIKE 'J%' AND NOT (readmitted OR beds_moved > 3) AND born < DATE '1960-01-01' GROUP BY insurer HAVING count(DISTINCT patient_id) > 75
--> planned

SELECT ward FROM stays s WHERE EXISTS (SELECT 1 FROM stays t WHERE t.patient_id = s.patient_id AND t.readmitted) GROUP BY ward HAVING count(*) > 100
--> planned

SELECT ward FROM stays WHERE (admitted, discharged) OVERLAPS (DATE '2024-01-01', DATE '2024-02-01') GROUP BY ward HAVING count(*) > 100
--> KH205

SELECT ward FROM stays GROUP BY ward HAVING avg(discharged - admitted) > interval '6 days 12 hours'
--> planned

SELECT ward, 100.0 * sum(readmitted::int) / count(*) AS readmission_rate FROM stays GROUP BY ward HAVING 100.0 * sum(readmitted::int) / count(*) > 12.5
--> planned

SELECT ward, round(avg(cost) / nullif(avg(discharged::date - admitted::date), 0)) AS cost_per_day FROM stays GROUP BY ward HAVING sum(cost) / sum(discharged::date - admitted::date) > 800
--> planned

SELECT ward FROM stays GROUP BY ward HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM discharged - admitted) / 86400) > 4
--> planned

SELECT sex FROM stays GROUP BY sex HAVING sum(CASE WHEN emergency THEN cost END) > 0.5 * sum(cost)
--> planned

SELECT ward FROM stays GROUP BY ward HAVING count(*) / count(DISTINCT month) > 40
--> KH204

SELECT ward, stddev(age) FROM stays GROUP BY ward HAVING stddev(age) / avg(age) > 0.4
--> KH204

SELECT ward FROM stays GROUP BY ward HAVING max(age) - min(age) > 80
--> KH204

SELECT ward, count(*) AS n, dense_rank() OVER (ORDER BY count(*) DESC) AS place FROM stays GROUP BY ward HAVING count(*) > 50 ORDER BY place LIMIT 3
--> planned

SELECT month, ward FROM (SELECT month, ward, row_number() OVER (PARTITION BY month ORDER BY avg(cost) DESC) AS r FROM stays GROUP BY month, ward HAVING count(*) >= 30) q WHERE r = 1
--> planned

SELECT diagnosis_group, patients FROM (SELECT CASE WHEN diagnosis LIKE 'I%' THEN 'heart' WHEN diagnosis LIKE 'J%' THEN 'lung' ELSE 'other' END AS diagnosis_group, count(DISTINCT patient_id) AS patients FROM stays GROUP BY 1) t ORDER BY patients DESC LIMIT 1
--> planned

WITH recent AS (SELECT * FROM stays WHERE admitted >= '2024-07-01'), long_stays AS (SELECT ward, patient_id, discharged - admitted AS los FROM recent WHERE discharged IS NOT NULL) SELECT ward, count(*) FROM long_stays WHERE los > interval '14 days' GROUP BY ward HAVING count(*) > 25
--> planned

SELECT a.ward, a.n AS this_year, b.n AS last_year FROM (SELECT ward, count(*) AS n FROM stays WHERE admitted >= '2024-01-01' GROUP BY ward) a JOIN (SELECT ward, count(*) AS n FROM stays WHERE admitted < '2024-01-01' GROUP BY ward) b ON a.ward = b.ward WHERE a.n > 500 AND b.n > 500
--> planned

SELECT ward FROM stays GROUP BY ward HAVING cost > 5000
--> KH207

SELECT ward, count(*) AS cost FROM stays GROUP BY ward HAVING cost > 500
--> KH207

SELECT ward, avg(n) FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY ward, patient_id) per_patient GROUP BY ward HAVING avg(n) > 1.5 AND count(*) > 100
--> planned

SELECT n_stays, count(*) FROM (SELECT patient_id, count(*) AS n_stays FROM stays GROUP BY patient_id) t GROUP BY n_stays HAVING count(*) > 100
--> planned
