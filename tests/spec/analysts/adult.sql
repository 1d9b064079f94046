-- # What analysts write about the 1994 census extract, each record protected, by the families of docs/asking.md.
-- # numbers
SELECT education, COUNT(*) AS total, AVG(hours_per_week) AS avg_hours FROM adult GROUP BY education HAVING AVG(hours_per_week) > 40 ORDER BY avg_hours DESC
--> planned

SELECT occupation, sex, COUNT(*) AS cnt, ROUND(AVG(age), 1) AS avg_age FROM adult WHERE occupation <> '?' GROUP BY occupation, sex HAVING COUNT(*) >= 500
--> planned

-- # key
SELECT CASE WHEN native_country = 'United-States' THEN 'US' WHEN native_country = '?' THEN NULL ELSE 'other' END AS origin, income FROM adult GROUP BY 1, 2 HAVING count(*) > 300
--> planned

SELECT CASE WHEN marital_status LIKE 'Married%' THEN 'Married' WHEN marital_status = 'Never-married' THEN 'Single' ELSE 'Formerly married' END AS status, COUNT(*) FROM adult GROUP BY status HAVING COUNT(*) > 1000
--> planned

SELECT age - age % 10 AS age_bin, income, COUNT(*) FROM adult GROUP BY age_bin, income HAVING COUNT(*) > 500 ORDER BY age_bin
--> planned

SELECT WIDTH_BUCKET(hours_per_week, ARRAY[20, 35, 41, 60]) AS bucket FROM adult GROUP BY bucket HAVING COUNT(*) > 2000
--> planned

SELECT NULLIF(workclass, '?') AS workclass FROM adult GROUP BY 1 HAVING COUNT(*) > 1000
--> planned

SELECT capital_gain - capital_loss > 0 AS net_gain, sex FROM adult GROUP BY 1, 2 HAVING count(*) > 500
--> planned

SELECT 'Age ' || CASE WHEN age >= 50 THEN '50+' ELSE 'under 50' END AS grp FROM adult GROUP BY 1 HAVING AVG(hours_per_week) > 39
--> planned

SELECT length(education) > 5, count(*) FROM adult GROUP BY 1 HAVING count(*) > 1000
--> planned

-- # row
SELECT education FROM adult WHERE capital_gain > 0 AND hours_per_week * 52 > 2500 GROUP BY education HAVING COUNT(*) > 50
--> planned

SELECT occupation FROM adult WHERE age - education_num - 6 > 20 GROUP BY occupation HAVING COUNT(*) > 1000
--> planned

-- # guard
SELECT education FROM adult GROUP BY education HAVING SUM(CASE WHEN income = '>50K' THEN 1 ELSE 0 END) * 1.0 / COUNT(*) > 0.4
--> planned

SELECT occupation FROM adult GROUP BY occupation HAVING AVG((income = '>50K')::int) > 0.3
--> planned

SELECT workclass FROM adult GROUP BY workclass HAVING AVG(age) FILTER (WHERE sex = 'Female') < AVG(age) FILTER (WHERE sex = 'Male')
--> planned

SELECT occupation FROM adult GROUP BY occupation HAVING COUNT(*) FILTER (WHERE sex = 'Female') > 2 * COUNT(*) FILTER (WHERE sex = 'Male')
--> planned

SELECT education FROM adult GROUP BY education HAVING MODE() WITHIN GROUP (ORDER BY hours_per_week) = 40
--> KH204

SELECT education FROM adult GROUP BY education HAVING max(capital_gain) = 99999
--> planned

-- # rank
SELECT occupation, AVG(hours_per_week) AS h FROM adult GROUP BY occupation HAVING COUNT(*) > 500 ORDER BY h DESC LIMIT 5
--> planned

SELECT sex, occupation FROM (SELECT sex, occupation, RANK() OVER (PARTITION BY sex ORDER BY COUNT(*) DESC) AS rk FROM adult GROUP BY sex, occupation) t WHERE rk <= 3
--> planned

-- # text
SELECT income, education FROM adult GROUP BY income, education HAVING COUNT(*) > (SELECT AVG(c) FROM (SELECT COUNT(*) AS c FROM adult GROUP BY income, education) q)
--> planned

SELECT native_country, COUNT(*) FROM adult GROUP BY native_country HAVING COUNT(*) > 100 ORDER BY COUNT(*) DESC
--> KH202
