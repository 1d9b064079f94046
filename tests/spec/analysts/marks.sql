-- # A school's marks as its analysts ask about them; the policy is marks.toml.
SELECT subject, round(avg(mark), 1) AS average_mark, count(*) AS papers FROM marks WHERE NOT absent GROUP BY subject HAVING avg(mark) > 48 ORDER BY average_mark DESC
--> planned
SELECT s.house, m.subject, avg(m.mark) AS avg_mark FROM marks m INNER JOIN students s ON s.student_id = m.student_id GROUP BY s.house, m.subject HAVING avg(m.mark) >= 50 AND count(m.mark) >= 200 ORDER BY s.house, avg_mark DESC
--> planned
SELECT subject, term, count(*) FILTER (WHERE grade = 'A') AS a_grades, count(*) FILTER (WHERE grade IN ('D', 'U')) AS low_grades FROM marks GROUP BY subject, term HAVING count(*) FILTER (WHERE grade = 'A') > count(*) FILTER (WHERE grade IN ('D', 'U')) / 2
--> planned
SELECT CASE WHEN mark >= 90 THEN '90-100' WHEN mark >= 70 THEN '70-89' WHEN mark >= 50 THEN '50-69' ELSE 'below 50' END AS band, subject, count(*) AS n FROM marks WHERE mark IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 1500 ORDER BY 2, 1
--> planned
SELECT year_group, sum(CASE WHEN bursary THEN 1 ELSE 0 END) * 100.0 / count(*) AS pct FROM students GROUP BY year_group HAVING sum(CASE WHEN bursary THEN 1 ELSE 0 END) * 100.0 / count(*) > 24
--> planned
SELECT s.house FROM students s LEFT JOIN marks m ON m.student_id = s.student_id WHERE m.absent GROUP BY s.house HAVING count(DISTINCT s.student_id) > 400
--> planned
SELECT subject, count(DISTINCT student_id) FROM marks WHERE minutes_taken > minutes_allowed GROUP BY subject HAVING count(DISTINCT student_id) > 1000
--> planned
SELECT subject, avg(minutes_taken::numeric / minutes_allowed) AS share FROM marks GROUP BY subject HAVING avg(minutes_taken::numeric / minutes_allowed) > 0.8
--> planned
SELECT school_year, term, sum(mark) / sum(max_mark) AS score FROM marks GROUP BY school_year, term HAVING sum(mark) / sum(max_mark) < 0.5
--> planned
SELECT subject FROM marks GROUP BY subject HAVING avg(CASE grade WHEN 'A' THEN 4 WHEN 'B' THEN 3 WHEN 'C' THEN 2 WHEN 'D' THEN 1 ELSE 0 END) > 1.9
--> planned
SELECT date_trunc('month', sat_at)::date AS month, subject, count(*) FROM marks WHERE sat_at >= '2022-09-01' AND sat_at < '2023-09-01' GROUP BY 1, 2 HAVING count(*) > 250
--> planned
SELECT to_char(sat_at, 'Dy') AS day, count(*) FROM marks GROUP BY 1 HAVING count(*) > 9900
--> planned
SELECT s.travels_by, count(*) FILTER (WHERE m.absent)::float / count(*) AS absence_rate FROM marks m JOIN students s USING (student_id) WHERE s.travels_by IS NOT NULL GROUP BY s.travels_by HAVING count(*) FILTER (WHERE m.absent)::float / count(*) > 0.04
--> planned
SELECT subject, rank() OVER (ORDER BY avg(mark) DESC) AS position FROM marks GROUP BY subject HAVING count(mark) > 1000
--> planned
SELECT * FROM (SELECT s.year_group, m.subject, count(*) AS n, dense_rank() OVER (PARTITION BY s.year_group ORDER BY count(*) DESC) AS r FROM marks m JOIN students s ON m.student_id = s.student_id GROUP BY 1, 2) ranked WHERE r <= 2
--> planned
SELECT extract(year from age(date '2024-09-01', born))::int AS age, count(*) FROM students GROUP BY 1 HAVING count(*) > 300 ORDER BY 1
--> planned
SELECT house || ' ' || year_group AS class, count(*) FROM students GROUP BY house, year_group HAVING count(*) > 160
--> planned
SELECT CASE WHEN year_group <= 9 THEN 'lower' ELSE 'upper' END AS school, travels_by, count(*) FROM students GROUP BY 1, 2 HAVING count(*) >= 400
--> planned
SELECT subject, percentile_cont(0.9) WITHIN GROUP (ORDER BY mark) AS p90 FROM marks GROUP BY subject HAVING percentile_cont(0.9) WITHIN GROUP (ORDER BY mark) >= 88
--> planned
SELECT subject, max(mark) - min(mark) AS spread FROM marks GROUP BY subject HAVING max(mark) - min(mark) > 90
--> KH204
SELECT subject, stddev_pop(mark) FROM marks WHERE mark > 0 GROUP BY subject HAVING stddev_pop(mark) > 25
--> planned
SELECT student_id, avg(mark) FROM marks GROUP BY student_id HAVING avg(mark) > 85
--> KH202
SELECT house, count(*) FROM students WHERE student_id IN (SELECT student_id FROM marks GROUP BY student_id HAVING avg(mark) > 55) GROUP BY house HAVING count(*) > 150
--> planned
SELECT n_absences, count(*) AS students FROM (SELECT student_id, count(*) FILTER (WHERE absent) AS n_absences FROM marks GROUP BY student_id) t GROUP BY n_absences HAVING count(*) > 100
--> planned
WITH pass AS (SELECT subject, school_year, avg(CASE WHEN mark >= 40 THEN 1.0 ELSE 0.0 END) AS rate FROM marks WHERE mark IS NOT NULL GROUP BY subject, school_year) SELECT subject, school_year FROM pass WHERE rate > 0.55 ORDER BY rate DESC
--> planned
SELECT width_bucket(mark, 0, 100, 10) AS decile, count(*) FROM marks WHERE subject = 'Maths' GROUP BY decile HAVING count(*) > 800 ORDER BY decile
--> planned
SELECT subject, bool_and(mark <= max_mark) AS consistent FROM marks GROUP BY subject
--> planned
SELECT attempts, count(*), avg(mark) FROM marks GROUP BY attempts HAVING avg(mark) BETWEEN 40 AND 60
--> planned
SELECT grade, term FROM marks WHERE grade IS NOT NULL GROUP BY GROUPING SETS ((grade, term), (grade)) HAVING count(*) > 4000
--> planned
SELECT subject FROM marks WHERE sat_at::time BETWEEN '09:00' AND '12:00' GROUP BY subject HAVING count(*) > 1000
--> planned
SELECT m.subject, s.house FROM marks m, students s WHERE m.student_id = s.student_id AND s.year_group BETWEEN 10 AND 12 AND m.grade IN ('A', 'B') GROUP BY m.subject, s.house HAVING count(DISTINCT m.student_id) > 150
--> planned
SELECT "marks"."term" AS "term", AVG("marks"."mark") AS "avg" FROM "public"."marks" LEFT JOIN "public"."students" AS "Students" ON "marks"."student_id" = "Students"."student_id" WHERE "Students"."house" = 'Red' GROUP BY "marks"."term" HAVING AVG("marks"."mark") > 45 ORDER BY "avg" DESC, "marks"."term" ASC
--> planned
SELECT subject, count(DISTINCT date_trunc('week', sat_at)) AS weeks FROM marks GROUP BY subject HAVING count(DISTINCT date_trunc('week', sat_at)) > 100
--> planned
SELECT subject FROM marks GROUP BY subject HAVING count(*) FILTER (WHERE mark > 50) * 1.0 / nullif(count(mark), 0) >= 0.5 OR avg(minutes_taken) > 70
--> planned
SELECT concat_ws(' / ', subject, term) AS exam, sum(mark) FROM marks GROUP BY subject, term HAVING sum(mark) > 150000
--> planned
SELECT s.year_group, m.subject, avg(m.mark) FILTER (WHERE s.bursary) AS with_bursary, avg(m.mark) FILTER (WHERE NOT s.bursary) AS without FROM marks m JOIN students s USING (student_id) GROUP BY 1, 2 HAVING abs(avg(m.mark) FILTER (WHERE s.bursary) - avg(m.mark) FILTER (WHERE NOT s.bursary)) > 5
--> KH211
SELECT m.subject, s.house, sum(m.mark) AS points FROM marks m JOIN students s ON s.student_id = m.student_id WHERE m.school_year = 2023 GROUP BY m.subject, s.house ORDER BY points DESC LIMIT 5
--> planned
SELECT extract(hour from sat_at) / 6 AS quarter_of_day, count(*) FROM marks GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT floor(extract(hour from sat_at) / 6) AS quarter_of_day, count(*) FROM marks GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT CASE WHEN minutes_taken::float / minutes_allowed > 1 THEN 'over' WHEN minutes_taken::float / minutes_allowed > 0.8 THEN 'tight' ELSE 'relaxed' END AS pace, subject FROM marks GROUP BY pace, subject HAVING count(*) > 2000
--> planned
SELECT subject FROM marks GROUP BY subject HAVING abs(sum(mark)) > 1000
--> planned
SELECT subject FROM marks GROUP BY subject HAVING abs(avg(mark) - 50) < 5
--> planned
SELECT subject FROM marks GROUP BY subject HAVING abs(count(*) FILTER (WHERE grade = 'A') - count(*) FILTER (WHERE grade = 'B')) > 100
--> planned
SELECT subject FROM marks GROUP BY subject HAVING abs(avg(mark) FILTER (WHERE term = 'autumn') - avg(mark) FILTER (WHERE term = 'spring')) > 5
--> KH211
SELECT subject FROM marks GROUP BY subject HAVING avg(mark) FILTER (WHERE term = 'autumn') - avg(mark) FILTER (WHERE term = 'spring') > 5
--> planned
SELECT subject FROM marks GROUP BY subject HAVING avg(mark) FILTER (WHERE term = 'autumn') - avg(mark) FILTER (WHERE term = 'spring') > 5 OR avg(mark) FILTER (WHERE term = 'autumn') - avg(mark) FILTER (WHERE term = 'spring') < -5
--> KH211
SELECT subject FROM marks GROUP BY subject HAVING count(*) FILTER (WHERE grade = 'A') > count(*) / 5
--> planned
SELECT subject FROM marks GROUP BY subject HAVING count(*) FILTER (WHERE grade = 'A') >= count(*) / 5
--> planned
SELECT subject FROM marks GROUP BY subject HAVING count(*) / 2 < count(mark)
--> planned
SELECT subject FROM marks GROUP BY subject HAVING count(*) / 100 > 50
--> planned
SELECT subject FROM marks GROUP BY subject HAVING count(*) FILTER (WHERE grade = 'A') * 100 / count(*) > 15
--> planned
SELECT subject FROM marks GROUP BY subject HAVING sum(minutes_taken) / 60 > 9000
--> planned
SELECT subject FROM marks GROUP BY subject HAVING sum(minutes_taken) / count(*) > 60
--> planned
SELECT subject FROM marks GROUP BY subject HAVING count(*) FILTER (WHERE grade = 'A') > (count(*) FILTER (WHERE grade = 'B') + count(*) FILTER (WHERE grade = 'C')) / 2
--> planned
SELECT subject FROM marks GROUP BY subject HAVING max(mark) - min(mark) > 90
--> KH204
SELECT subject, max(mark) > 95 AND min(mark) < 5 AS wide FROM marks GROUP BY subject
--> planned
