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
