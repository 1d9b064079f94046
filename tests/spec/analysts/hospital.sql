-- # What analysts write about patients by their stays and laboratory values: units that did, and units that did not.
SELECT sex FROM patients WHERE patient_id IN (SELECT patient_id FROM stays WHERE ward = 'icu') GROUP BY sex HAVING count(*) > 50
--> planned

SELECT ward FROM stays WHERE patient_id IN (SELECT patient_id FROM labs WHERE test = 'crp' AND value > 100) GROUP BY ward HAVING count(DISTINCT patient_id) > 30
--> planned

SELECT ward FROM stays s WHERE NOT EXISTS (SELECT 1 FROM labs l WHERE l.patient_id = s.patient_id) GROUP BY ward HAVING count(*) > 30
--> planned

SELECT ward, month FROM stays WHERE patient_id IN (SELECT patient_id FROM stays GROUP BY patient_id HAVING count(*) >= 3) GROUP BY ward, month HAVING count(DISTINCT patient_id) >= 20
--> planned

SELECT s.ward FROM stays s JOIN (SELECT patient_id, max(value) AS worst FROM labs WHERE test = 'creatinine' GROUP BY patient_id HAVING max(value) > 200) l ON l.patient_id = s.patient_id GROUP BY s.ward HAVING count(DISTINCT s.patient_id) > 20
--> planned

SELECT p.insurer FROM patients p LEFT JOIN stays s ON s.patient_id = p.patient_id AND s.emergency WHERE s.patient_id IS NULL GROUP BY p.insurer HAVING count(*) > 100
--> planned

SELECT p.sex FROM patients p LEFT JOIN (SELECT patient_id, count(*) AS n FROM labs WHERE abnormal GROUP BY 1) a USING (patient_id) WHERE a.n IS NULL GROUP BY p.sex HAVING count(*) > 100
--> planned

WITH frequent AS (SELECT patient_id FROM stays WHERE ward = 'er' GROUP BY patient_id HAVING count(*) > 4), died AS (SELECT patient_id FROM stays WHERE outcome = 'died') SELECT insurer FROM patients WHERE patient_id IN (SELECT patient_id FROM frequent) AND patient_id NOT IN (SELECT patient_id FROM died) GROUP BY insurer HAVING count(*) > 20
--> planned

SELECT insurer FROM patients WHERE patient_id IN (SELECT patient_id FROM stays GROUP BY patient_id HAVING bool_or(outcome = 'died') OR sum(days) > 60) GROUP BY insurer HAVING count(*) > 20
--> planned

SELECT ward FROM stays WHERE patient_id IN (SELECT patient_id FROM labs GROUP BY patient_id HAVING avg(value) FILTER (WHERE test = 'glucose') > 140) GROUP BY ward HAVING count(DISTINCT patient_id) > 25
--> planned

SELECT sex FROM patients WHERE patient_id IN (SELECT patient_id FROM labs GROUP BY patient_id HAVING max(value) FILTER (WHERE test = 'hba1c') - min(value) FILTER (WHERE test = 'hba1c') > 2) GROUP BY sex HAVING count(*) > 25
--> KH205

SELECT ward FROM stays s WHERE (SELECT count(DISTINCT test) FROM labs l WHERE l.patient_id = s.patient_id) >= 3 GROUP BY ward HAVING count(*) > 40
--> planned

SELECT ward FROM stays s WHERE 2 <= (SELECT count(*) FROM stays r WHERE r.patient_id = s.patient_id AND r.emergency AND r.admitted >= TIMESTAMP '2024-06-01') GROUP BY ward HAVING count(DISTINCT patient_id) > 40
--> planned

SELECT sex, insurer FROM patients WHERE NOT (patient_id IN (SELECT patient_id FROM stays WHERE ward = 'maternity') OR patient_id IN (SELECT patient_id FROM stays WHERE ward = 'icu')) GROUP BY sex, insurer HAVING count(*) > 60
--> planned

SELECT test FROM labs WHERE patient_id IN (SELECT patient_id FROM stays WHERE outcome = 'transfer' UNION SELECT patient_id FROM stays WHERE days > 30) GROUP BY test HAVING count(DISTINCT patient_id) > 30
--> planned

SELECT test FROM labs WHERE patient_id IN (SELECT patient_id FROM patients WHERE born < DATE '1950-01-01') AND abnormal GROUP BY test HAVING count(*) > 100
--> planned

SELECT ward FROM stays WHERE patient_id IN (SELECT patient_id FROM stays GROUP BY patient_id HAVING min(admitted) >= TIMESTAMP '2024-03-01') GROUP BY ward HAVING count(DISTINCT patient_id) > 40
--> planned

SELECT ward FROM stays WHERE patient_id IN (SELECT patient_id FROM stays GROUP BY patient_id HAVING count(*) FILTER (WHERE emergency) > count(*) FILTER (WHERE NOT emergency)) GROUP BY ward HAVING count(DISTINCT patient_id) > 40
--> planned

SELECT insurer FROM patients WHERE patient_id IN (SELECT q.patient_id FROM (SELECT patient_id, sum(days) AS nights, count(*) AS stays FROM stays GROUP BY patient_id) q WHERE q.nights / q.stays > 10) GROUP BY insurer HAVING count(*) > 15
--> planned

SELECT ward FROM stays s WHERE EXISTS (SELECT 1 FROM labs l WHERE l.patient_id = s.patient_id AND l.taken > s.admitted AND l.abnormal) GROUP BY ward HAVING count(*) > 40
--> KH107

SELECT ward FROM stays s WHERE s.patient_id IN (SELECT l.patient_id FROM labs l JOIN patients p ON p.patient_id = l.patient_id WHERE p.sex = 'f' AND l.abnormal) GROUP BY ward HAVING count(*) > 40
--> planned

-- # values of one unit's own rows
SELECT p.insurer FROM patients p JOIN (SELECT patient_id, count(*) AS stays, max(admitted) AS last FROM stays GROUP BY patient_id) s ON s.patient_id = p.patient_id WHERE s.stays > 2 AND s.last < '2024-07-01' GROUP BY p.insurer HAVING count(*) > 20
--> planned

SELECT p.sex, coalesce(l.n, 0) > 3 AS tested FROM patients p LEFT JOIN (SELECT patient_id, count(*) AS n FROM labs WHERE abnormal GROUP BY patient_id) l USING (patient_id) GROUP BY 1, 2 HAVING count(*) > 30
--> planned

SELECT ward FROM (SELECT ward, admitted, lag(admitted) OVER (PARTITION BY patient_id ORDER BY admitted) AS before FROM stays) t WHERE admitted < before + interval '30 days' GROUP BY ward HAVING count(*) > 20
--> planned

SELECT l.test FROM labs l JOIN (SELECT patient_id, min(admitted) AS first FROM stays GROUP BY patient_id) s ON s.patient_id = l.patient_id WHERE l.taken < s.first GROUP BY l.test HAVING count(DISTINCT l.patient_id) > 30
--> planned

SELECT first_ward, outcome FROM (SELECT outcome, first_value(ward) OVER (PARTITION BY patient_id ORDER BY admitted) AS first_ward FROM stays) t GROUP BY 1, 2 HAVING count(*) > 40
--> planned

SELECT ward FROM (SELECT ward, rank() OVER (PARTITION BY patient_id ORDER BY days DESC) AS r FROM stays) t WHERE r = 1 GROUP BY ward HAVING count(*) > 40
--> planned

SELECT extract(year FROM age(first, born)) AS years FROM patients JOIN (SELECT patient_id, min(admitted) AS first FROM stays GROUP BY patient_id) s USING (patient_id) WHERE born BETWEEN '1930-01-01' AND '2020-12-31' GROUP BY 1 HAVING count(*) > 10
--> KH202

SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id WHERE extract(year FROM age(s.admitted, p.born)) >= 65 GROUP BY s.ward HAVING count(*) > 100
--> planned

SELECT s.ward FROM stays s JOIN patients p USING (patient_id) GROUP BY s.ward HAVING avg(extract(year FROM age(s.admitted, p.born))) > 60
--> planned

SELECT p.sex FROM stays s JOIN patients p USING (patient_id) GROUP BY p.sex HAVING count(DISTINCT s.patient_id) FILTER (WHERE s.admitted < p.born + interval '18 years') > 50
--> planned

SELECT p.insurer FROM patients p JOIN stays s ON s.patient_id = p.patient_id WHERE s.admitted BETWEEN p.born AND p.born + interval '28 days' GROUP BY p.insurer HAVING count(*) > 20
--> planned
