-- # What analysts write about a course's passengers, each row protected, by the families of docs/asking.md.
-- # numbers
SELECT Pclass, Sex, COUNT(*) AS passengers, AVG(Survived) AS survival_rate FROM titanic GROUP BY Pclass, Sex HAVING COUNT(*) > 60
--> planned

SELECT pclass, ROUND(AVG(fare)::numeric, 2) AS avg_fare, MAX(age) FROM titanic GROUP BY pclass HAVING AVG(fare) > 20
--> planned

-- # key
SELECT CASE WHEN age < 13 THEN 'Child' WHEN age < 20 THEN 'Teenager' WHEN age < 60 THEN 'Adult' WHEN age >= 60 THEN 'Senior' ELSE 'Unknown' END AS age_group, sex, COUNT(*) FROM titanic GROUP BY age_group, sex HAVING COUNT(*) > 30
--> planned

SELECT sibsp + parch + 1 AS family_size, COUNT(*) FROM titanic GROUP BY family_size HAVING COUNT(*) > 50
--> planned

SELECT LEFT(cabin, 1) AS deck FROM titanic WHERE cabin IS NOT NULL GROUP BY LEFT(cabin, 1) HAVING COUNT(*) > 30
--> KH202

SELECT CASE WHEN name LIKE '%Mrs.%' THEN 'Mrs' WHEN name LIKE '%Miss.%' THEN 'Miss' WHEN name LIKE '%Mr.%' THEN 'Mr' WHEN name LIKE '%Master.%' THEN 'Master' ELSE 'Other' END AS title, pclass FROM titanic GROUP BY title, pclass HAVING COUNT(*) > 50
--> planned

SELECT NTILE(4) OVER (ORDER BY fare) AS q, AVG(survived) FROM titanic GROUP BY q
--> KH101

SELECT FLOOR(age/10)*10 AS decade, survived FROM titanic WHERE age IS NOT NULL GROUP BY 1, 2 HAVING COUNT(*) > 30
--> planned

SELECT CASE survived WHEN 1 THEN 'yes' ELSE 'no' END AS survived, COALESCE(embarked, 'S') AS port FROM titanic GROUP BY 1, 2 HAVING COUNT(*) > 50
--> planned

SELECT cabin IS NULL AS no_cabin, sibsp + parch = 0 AS alone FROM titanic GROUP BY 1, 2 HAVING COUNT(*) > 50
--> planned

SELECT trim(split_part(split_part(name, ',', 2), '.', 1)) AS title, count(*) FROM titanic GROUP BY 1 HAVING count(*) > 40
--> KH202

-- # guard
SELECT pclass FROM titanic GROUP BY pclass HAVING AVG(survived) > 0.5
--> planned

SELECT sex, pclass FROM titanic GROUP BY sex, pclass HAVING SUM(survived) * 100.0 / COUNT(*) >= 40
--> planned

-- # rank
SELECT pclass, sex, AVG(survived) AS rate FROM titanic GROUP BY pclass, sex ORDER BY rate DESC LIMIT 1
--> planned

SELECT embarked FROM titanic WHERE embarked IS NOT NULL GROUP BY embarked ORDER BY COUNT(*) DESC LIMIT 1
--> planned
