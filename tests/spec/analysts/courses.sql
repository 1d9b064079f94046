-- # What analysts write about enrolments with a spreadsheet's names, students protected, by the families of docs/asking.md.
-- # numbers
SELECT "Department", AVG("Final Grade") AS "Average Grade" FROM enrolments GROUP BY "Department" HAVING AVG("Final Grade") > 12 ORDER BY "Average Grade" DESC
--> planned

SELECT "Term" AS "TERM", COUNT(DISTINCT "StudentID") "Students" FROM Enrolments GROUP BY "Term" HAVING COUNT(DISTINCT "StudentID") > 500
--> planned

SELECT E."Department", E.degree, SUM(E.credits) AS total_credits, SUM(E.fee)::money FROM enrolments E GROUP BY E."Department", E.degree HAVING SUM(E.credits) > 5000
--> planned

SELECT course_code, COUNT(*) FILTER (WHERE passed) AS "Passed", COUNT(*) FILTER (WHERE NOT passed) AS "Failed" FROM enrolments GROUP BY course_code HAVING COUNT(*) FILTER (WHERE NOT passed) > 500
--> planned

-- # key
SELECT split_part(course_code, '-', 1) AS subject, "Term" FROM enrolments GROUP BY 1, 2 HAVING COUNT(DISTINCT "StudentID") > 300
--> planned

SELECT LEFT("Term", 4)::int AS year, RIGHT("Term", 2) AS season FROM enrolments GROUP BY year, season HAVING COUNT(*) > 1000
--> planned

SELECT CASE WHEN "Final Grade" >= 16 THEN 'A' WHEN "Final Grade" >= 14 THEN 'B' WHEN "Final Grade" >= 10 THEN 'C' WHEN "Final Grade" IS NULL THEN 'none' ELSE 'F' END AS mark, "Department" FROM enrolments GROUP BY 1, "Department" HAVING COUNT(*) > 200
--> planned

SELECT FLOOR("Final Grade") AS grade, COUNT(*) FROM enrolments GROUP BY FLOOR("Final Grade") HAVING COUNT(*) > 500 ORDER BY grade
--> planned

SELECT REPLACE("Mode", ' ', '_') AS mode, dropped_on IS NOT NULL AS dropped FROM enrolments GROUP BY 1, 2 HAVING COUNT(*) > 500
--> planned

SELECT ROUND(attendance, -1) AS attendance_bin FROM enrolments GROUP BY 1 HAVING COUNT(*) > 1000
--> planned

SELECT passed IS TRUE AS ok, degree FROM enrolments GROUP BY passed IS TRUE, degree HAVING COUNT(*) > 500
--> planned

SELECT EXTRACT(MONTH FROM enrolled_on)::int AS month, COUNT(*) FROM enrolments GROUP BY EXTRACT(MONTH FROM enrolled_on) HAVING COUNT(*) > 2000
--> planned

SELECT substr(course_code, 4, 1) || '00-level' AS level FROM enrolments GROUP BY substr(course_code, 4, 1) HAVING COUNT(*) > 3000
--> planned

SELECT (enrolled_on - DATE '2022-09-01') / 30 AS period FROM enrolments WHERE enrolled_on BETWEEN '2022-09-01' AND '2023-08-31' GROUP BY 1 HAVING COUNT(*) > 1000
--> planned

-- # row
SELECT "Department" FROM enrolments WHERE dropped_on - enrolled_on < 30 AND dropped_on >= enrolled_on GROUP BY "Department" HAVING COUNT(*) > 10
--> planned

SELECT "Department" FROM enrolments WHERE fee / NULLIF(credits, 0) > 200 GROUP BY "Department" HAVING COUNT(*) > 500
--> planned

SELECT course_code FROM enrolments WHERE "Final Grade" * 0.7 + attendance * 0.3 / 5 >= 14 GROUP BY course_code HAVING COUNT(*) > 500
--> planned

SELECT degree FROM enrolments WHERE "Term" LIKE '2023%' AND ("Department", "Mode") IN (('Law', 'Online'), ('Arts', 'Online')) GROUP BY degree HAVING COUNT(*) > 100
--> planned

SELECT "Department" FROM enrolments WHERE passed IS NOT TRUE AND COALESCE(dropped_on, DATE '9999-12-31') > DATE '2024-01-01' GROUP BY "Department" HAVING COUNT(DISTINCT "StudentID") > 200
--> planned

-- # guard
SELECT "Department" FROM enrolments GROUP BY "Department" HAVING AVG(passed::int) < 0.8
--> planned

SELECT course_code, ROUND(AVG("Final Grade")::numeric, 2) FROM enrolments GROUP BY course_code HAVING ROUND(AVG("Final Grade")::numeric, 1) >= 13.0
--> planned

SELECT "Department" FROM enrolments GROUP BY "Department" HAVING SUM(fee) / SUM(credits) > 110
--> planned

SELECT degree FROM enrolments GROUP BY degree HAVING VARIANCE("Final Grade") > 20
--> planned

SELECT degree FROM enrolments GROUP BY degree HAVING COUNT(DISTINCT course_code) > 3
--> planned

SELECT "Department", "Term", GROUPING("Term") FROM enrolments GROUP BY ROLLUP ("Department", "Term") HAVING COUNT(DISTINCT "StudentID") > 400
--> planned

SELECT course_code FROM enrolments GROUP BY course_code HAVING COUNT(*) > 100 AND MIN("Final Grade") >= 1
--> planned

SELECT "Department" FROM enrolments GROUP BY "Department" HAVING AVG("Final Grade") FILTER (WHERE "Mode" = 'Online') - AVG("Final Grade") FILTER (WHERE "Mode" = 'On campus') > 0.5
--> planned

-- # rank
SELECT "Department", AVG("Final Grade") AS avg_grade, RANK() OVER (ORDER BY AVG("Final Grade") DESC) AS r FROM enrolments GROUP BY "Department" HAVING COUNT(*) > 100
--> planned

SELECT TOP.course_code FROM (SELECT course_code, COUNT(*) AS n FROM enrolments GROUP BY course_code) AS TOP ORDER BY TOP.n DESC LIMIT 3
--> planned

SELECT "Term", "Department" FROM (SELECT "Term", "Department", DENSE_RANK() OVER (PARTITION BY "Term" ORDER BY COUNT(DISTINCT "StudentID") DESC) AS d FROM enrolments GROUP BY "Term", "Department") q WHERE d <= 2 ORDER BY "Term", d
--> planned

-- # text
WITH s AS (SELECT "Department" AS dept, COUNT(*) AS n, AVG("Final Grade") AS g FROM enrolments WHERE passed GROUP BY "Department") SELECT dept, CASE WHEN g > 14 THEN 'high' ELSE 'low' END AS level FROM s WHERE n > 1000
--> planned

SELECT "StudentID", COUNT(DISTINCT course_code) FROM enrolments GROUP BY "StudentID" HAVING COUNT(DISTINCT course_code) = 6
--> KH202

SELECT DISTINCT "Department" FROM enrolments
--> planned

SELECT department FROM enrolments GROUP BY department HAVING COUNT(*) > 100
--> KH201

SELECT "Department" FROM enrolments GROUP BY "Department" HAVING avg(dropped_on - enrolled_on) > 30
--> planned

-- # further
SELECT "Department", CASE WHEN "Final Grade" >= 16 THEN 'A' WHEN "Final Grade" >= 13 THEN 'B' WHEN "Final Grade" >= 10 THEN 'C' ELSE 'F' END AS letter, COUNT(*) FROM enrolments GROUP BY 1, 2 HAVING COUNT(*) > 60
--> planned

SELECT split_part("Term", '-', 1)::int AS year, split_part("Term", '-', 2) AS season, count(*) FROM enrolments GROUP BY 1, 2 HAVING count(*) > 500
--> planned

SELECT left(course_code, 2) AS subject, count(DISTINCT "StudentID") FROM enrolments GROUP BY left(course_code, 2) HAVING count(DISTINCT "StudentID") > 200
--> planned

SELECT right(course_code, 3)::int / 100 AS level FROM enrolments GROUP BY 1 HAVING count(*) > 300
--> planned

SELECT dropped_on - enrolled_on < 14 AS early_drop, degree FROM enrolments WHERE dropped_on IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 20
--> planned

SELECT date_trunc('month', enrolled_on)::date AS month FROM enrolments WHERE enrolled_on >= DATE '2023-08-01' AND enrolled_on < DATE '2024-08-01' GROUP BY 1 HAVING count(*) > 150
--> planned

SELECT round("Final Grade"::numeric) AS grade, count(*) AS n FROM enrolments WHERE passed GROUP BY 1 HAVING count(*) > 100 ORDER BY grade
--> planned

SELECT CASE WHEN "Mode" IS NULL THEN 'all' ELSE "Mode" END AS mode, "Term", count(*) FROM enrolments GROUP BY GROUPING SETS (("Mode", "Term"), ("Term")) HAVING count(*) > 400
--> planned

SELECT course_code FROM enrolments WHERE attendance < 50 AND "Final Grade" > 14 GROUP BY course_code HAVING count(*) > 25
--> planned

SELECT "Department" FROM enrolments WHERE fee / credits > 60 AND credits > 0 GROUP BY "Department" HAVING count(DISTINCT "StudentID") > 40
--> planned

SELECT degree, "Mode" FROM enrolments WHERE (course_code, "Term") IN (('CS-101', '2023-WS'), ('MA-101', '2023-WS')) GROUP BY 1, 2 HAVING count(*) > 50
--> planned

SELECT "Term" FROM enrolments WHERE "StudentID" NOT IN (SELECT "StudentID" FROM enrolments WHERE NOT passed) GROUP BY "Term" HAVING count(DISTINCT "StudentID") > 150
--> planned

SELECT course_code, avg(passed::int) AS pass_rate FROM enrolments GROUP BY course_code HAVING avg(passed::int) < 0.7
--> planned

SELECT course_code FROM enrolments GROUP BY course_code HAVING sum(case when dropped_on is not null then 1 else 0 end)::float / count(*) > 0.15
--> planned

SELECT course_code, avg("Final Grade") FROM enrolments GROUP BY course_code HAVING avg("Final Grade") FILTER (WHERE "Mode" = 'Online') < avg("Final Grade") FILTER (WHERE "Mode" = 'On campus')
--> planned

SELECT course_code FROM enrolments GROUP BY course_code HAVING min("Final Grade") >= 4 AND stddev_pop("Final Grade") < 3
--> planned

SELECT "Department", sum(fee) / count(DISTINCT "StudentID") AS fee_per_student FROM enrolments GROUP BY "Department" HAVING sum(fee) / count(DISTINCT "StudentID") > 900
--> planned

SELECT course_code FROM enrolments GROUP BY course_code HAVING percentile_disc(0.9) WITHIN GROUP (ORDER BY attendance) > 95 OR count(*) BETWEEN 20 AND 40
--> planned

SELECT course_code FROM enrolments GROUP BY course_code HAVING avg("Final Grade") >= 10 AND avg("Final Grade") < 8
--> planned

SELECT course_code FROM enrolments WHERE attendance > 90 AND attendance < 40 GROUP BY course_code HAVING count(*) > 20
--> planned

SELECT course_code, avg("Final Grade") AS g FROM enrolments GROUP BY course_code HAVING count(*) >= 100 ORDER BY g DESC LIMIT 3
--> planned

SELECT DISTINCT ON ("Department") "Department", course_code FROM enrolments GROUP BY "Department", course_code ORDER BY "Department", count(*) DESC
--> planned

SELECT "Term", course_code, rank() OVER (PARTITION BY "Term" ORDER BY count(DISTINCT "StudentID") DESC) <= 2 AS popular FROM enrolments GROUP BY 1, 2
--> planned

SELECT course_code, ntile(3) OVER (ORDER BY count(*)) AS third FROM enrolments GROUP BY course_code
--> planned

SELECT course_code FROM enrolments GROUP BY course_code ORDER BY avg(passed::int) ASC LIMIT 2
--> planned

SELECT e.course_code, n FROM (SELECT course_code, count(*) AS n FROM enrolments WHERE "Term" = '2024-SS' GROUP BY 1) e WHERE n >= 100 AND n <= 1000 ORDER BY n
--> planned

WITH per_student AS (SELECT "Department", "StudentID", avg("Final Grade") AS gpa, count(*) AS courses FROM enrolments GROUP BY 1, 2) SELECT "Department" FROM per_student WHERE courses >= 3 AND gpa > 14 GROUP BY "Department" HAVING count(*) > 30
--> planned

SELECT "Department", count(*) FILTER (WHERE gpa < 10) * 1.0 / count(*) FROM (SELECT "Department", "StudentID", avg("Final Grade") AS gpa FROM enrolments GROUP BY 1, 2) s GROUP BY "Department" HAVING count(*) FILTER (WHERE gpa < 10) * 1.0 / count(*) > 0.25
--> planned

SELECT course_code, count(*) AS credits FROM enrolments GROUP BY course_code HAVING credits > 300
--> KH207

SELECT "Department", "Term", count(*) AS n, sum(count(*)) OVER (PARTITION BY "Department" ORDER BY "Term") AS running FROM enrolments GROUP BY 1, 2 HAVING count(*) > 200
--> planned

SELECT CASE WHEN courses >= 8 THEN 'full' WHEN courses >= 4 THEN 'half' ELSE 'few' END AS load, count(*) FROM (SELECT "StudentID", count(*) AS courses FROM enrolments GROUP BY "StudentID") t GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT "Term" FROM enrolments GROUP BY "Term" HAVING count(*) > ALL (SELECT 0.2 * 20000)
--> KH208

-- # units that did, and units that did not
SELECT "Department" FROM enrolments WHERE "StudentID" IN (SELECT "StudentID" FROM enrolments WHERE NOT passed GROUP BY "StudentID" HAVING count(*) >= 3) GROUP BY "Department" HAVING count(DISTINCT "StudentID") > 40
--> planned

SELECT degree FROM enrolments e WHERE NOT EXISTS (SELECT 1 FROM enrolments x WHERE x."StudentID" = e."StudentID" AND x.dropped_on IS NOT NULL) GROUP BY degree HAVING count(DISTINCT "StudentID") > 40
--> planned

WITH full_load AS (SELECT "StudentID" FROM enrolments GROUP BY 1 HAVING sum(credits) >= 60) SELECT e."Mode" FROM enrolments e JOIN full_load f ON f."StudentID" = e."StudentID" GROUP BY e."Mode" HAVING count(DISTINCT e."StudentID") > 30
--> planned

SELECT "Term" FROM enrolments WHERE "StudentID" IN (SELECT "StudentID" FROM enrolments GROUP BY "StudentID" HAVING avg("Final Grade") > 16) GROUP BY "Term" HAVING count(*) > 300
--> planned

SELECT "Department" FROM enrolments WHERE "StudentID" IN (SELECT "StudentID" FROM enrolments WHERE "Department" = 'Physics' INTERSECT SELECT "StudentID" FROM enrolments WHERE "Department" = 'History') GROUP BY 1 HAVING count(*) > 20
--> planned

SELECT "Department" FROM enrolments WHERE "StudentID" IN (SELECT "StudentID" FROM enrolments GROUP BY "StudentID" HAVING count(DISTINCT "Department") > 2 AND bool_and(passed)) GROUP BY "Department" HAVING count(DISTINCT "StudentID") > 40
--> planned

SELECT degree FROM enrolments GROUP BY degree HAVING count(DISTINCT "StudentID") FILTER (WHERE "StudentID" IN (SELECT "StudentID" FROM enrolments WHERE NOT passed)) > 20
--> planned

SELECT "Term" FROM enrolments e WHERE (SELECT count(*) FROM enrolments p WHERE p."StudentID" = e."StudentID" AND p.enrolled_on < DATE '2022-09-01') = 0 GROUP BY "Term" HAVING count(DISTINCT "StudentID") > 40
--> planned
