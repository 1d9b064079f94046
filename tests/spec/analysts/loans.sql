-- # What analysts write about a library's loans, readers protected, by the families of docs/asking.md.
-- # numbers
SELECT branch, COUNT(*) AS "Number of loans" FROM loans GROUP BY branch HAVING COUNT(*) > 1000 ORDER BY "Number of loans" DESC
--> planned

SELECT genre, count(distinct reader_id) AS readers, round(avg(fine)::numeric, 2) AS avg_fine FROM loans GROUP BY genre HAVING count(distinct reader_id) >= 500 ORDER BY readers DESC
--> planned

SELECT l.branch AS "Branch", l.genre AS "Genre", COUNT(*)::float / COUNT(DISTINCT l.reader_id) AS loans_per_reader FROM loans l GROUP BY l.branch, l.genre HAVING COUNT(DISTINCT l.reader_id) > 100
--> planned

SELECT medium, SUM(fine) AS total_fines, MAX(fine) AS max_fine, MIN(borrowed_at) AS first_loan FROM loans GROUP BY medium HAVING SUM(fine) > 500
--> planned

WITH monthly AS (SELECT month, COUNT(*) AS cnt FROM loans GROUP BY month) SELECT to_char(month, 'Mon YYYY') AS label, cnt FROM monthly WHERE cnt > 1500 ORDER BY month
--> planned

-- # key
SELECT CASE WHEN reader_age < 12 THEN '0-11' WHEN reader_age BETWEEN 12 AND 17 THEN '12-17' WHEN reader_age BETWEEN 18 AND 64 THEN '18-64' ELSE '65+' END AS "Age group", COUNT(*) FROM loans GROUP BY 1 HAVING COUNT(DISTINCT reader_id) > 200 ORDER BY 1
--> planned

SELECT EXTRACT(DOW FROM borrowed_at) AS dow, EXTRACT(HOUR FROM borrowed_at) AS hr FROM loans GROUP BY 1, 2 HAVING COUNT(*) > 300
--> planned

SELECT TO_CHAR(borrowed_at, 'Day') AS weekday, COUNT(*) FROM loans GROUP BY TO_CHAR(borrowed_at, 'Day') HAVING COUNT(*) > 5000
--> planned

SELECT date_trunc('quarter', month)::date AS quarter FROM loans GROUP BY 1 HAVING count(*) > 4000 ORDER BY 1
--> planned

SELECT COALESCE(language, 'unknown') AS language, COUNT(*) AS n FROM loans GROUP BY COALESCE(language, 'unknown') HAVING COUNT(*) > 1000
--> planned

SELECT fine > 0 AS has_fine, branch FROM loans GROUP BY 1, 2 HAVING count(*) > 500
--> planned

SELECT returned_at IS NULL AS still_out, medium FROM loans GROUP BY returned_at IS NULL, medium HAVING count(*) > 200
--> planned

SELECT (reader_age / 10) * 10 || 's' AS decade FROM loans GROUP BY reader_age / 10 HAVING COUNT(DISTINCT reader_id) > 150
--> planned

SELECT UPPER(LEFT(branch, 3)) AS code, COUNT(*) FROM loans GROUP BY 1 HAVING COUNT(*) > 2000
--> planned

SELECT b.district, l.medium, COUNT(*) AS loans FROM loans l INNER JOIN branches b ON b.branch = l.branch GROUP BY b.district, l.medium HAVING COUNT(*) > 800 ORDER BY loans DESC
--> planned

SELECT EXTRACT(YEAR FROM b.opened) >= 2000 AS new_building, count(DISTINCT l.reader_id) FROM loans l JOIN branches b USING (branch) GROUP BY 1 HAVING count(DISTINCT l.reader_id) > 500
--> planned

SELECT (returned_at::date - borrowed_at::date) / 7 AS weeks_kept FROM loans WHERE returned_at IS NOT NULL AND returned_at::date - borrowed_at::date BETWEEN 0 AND 55 GROUP BY 1 HAVING COUNT(*) > 1000
--> planned

SELECT borrowed_at::date AS day, count(*) FROM loans WHERE borrowed_at >= '2024-06-01' AND borrowed_at < '2024-07-01' GROUP BY day HAVING count(*) > 60 ORDER BY day
--> planned

-- # row
SELECT branch FROM loans WHERE returned_at > borrowed_at + INTERVAL '21 days' GROUP BY branch HAVING COUNT(*) > 800
--> planned

SELECT genre FROM loans WHERE returned_at::date > due_on GROUP BY genre HAVING COUNT(DISTINCT reader_id) > 400
--> planned

SELECT branch, COUNT(*) FILTER (WHERE returned_at::date > due_on) AS late FROM loans GROUP BY branch HAVING COUNT(*) FILTER (WHERE returned_at::date > due_on) > 500
--> planned

SELECT branch, AVG(returned_at::date - borrowed_at::date) AS avg_days FROM loans WHERE returned_at IS NOT NULL GROUP BY branch HAVING COUNT(*) > 500
--> planned

SELECT branch FROM loans WHERE title ILIKE '%99%' AND lower(medium) IN ('book', 'audio') GROUP BY branch HAVING count(*) > 100
--> planned

SELECT medium FROM loans WHERE EXTRACT(ISODOW FROM borrowed_at) IN (6, 7) AND EXTRACT(HOUR FROM borrowed_at) >= 18 GROUP BY medium HAVING COUNT(*) > 300
--> planned

SELECT branch FROM loans WHERE borrowed_at >= date_trunc('year', DATE '2024-05-05') AND borrowed_at < date_trunc('year', DATE '2024-05-05') + interval '1 year' GROUP BY branch HAVING count(*) > 3000
--> planned

SELECT branch FROM loans WHERE age(returned_at, borrowed_at) > interval '1 month' GROUP BY branch HAVING count(*) > 300
--> planned

SELECT genre FROM loans GROUP BY genre HAVING SUM(CASE WHEN fine > 0 AND renewals = 0 THEN 1 ELSE 0 END) > 600
--> planned

-- # guard
SELECT branch FROM loans GROUP BY branch HAVING AVG(CASE WHEN returned_at IS NULL THEN 1.0 ELSE 0.0 END) >= 0.08
--> planned

SELECT genre, ROUND(100.0 * COUNT(*) FILTER (WHERE self_service) / NULLIF(COUNT(*), 0), 1) AS pct FROM loans GROUP BY genre HAVING 100.0 * COUNT(*) FILTER (WHERE self_service) / NULLIF(COUNT(*), 0) > 20
--> planned

SELECT branch FROM loans GROUP BY branch HAVING COUNT(*) * 1.0 / COUNT(DISTINCT reader_id) > 3
--> planned

SELECT genre FROM loans GROUP BY genre HAVING SUM(fine) / COUNT(DISTINCT reader_id) < 2.5
--> planned

SELECT branch, percentile_cont(0.5) WITHIN GROUP (ORDER BY fine) AS median_fine FROM loans GROUP BY branch HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY reader_age) > 40
--> planned

SELECT branch, genre FROM loans GROUP BY ROLLUP (branch, genre) HAVING COUNT(*) > 1000
--> planned

SELECT genre, COUNT(*) FROM loans GROUP BY genre HAVING (COUNT(*) > 9000) IS DISTINCT FROM (SUM(fine) > 3000)
--> KH206

SELECT medium FROM loans GROUP BY medium HAVING BOOL_OR(fine > 10) AND COUNT(*) > 100
--> planned

-- # rank
SELECT branch, COUNT(*) AS c FROM loans GROUP BY branch ORDER BY c DESC LIMIT 3
--> planned

SELECT branch, genre FROM (SELECT branch, genre, ROW_NUMBER() OVER (PARTITION BY branch ORDER BY COUNT(*) DESC) AS rn FROM loans GROUP BY branch, genre) t WHERE rn = 1
--> planned

WITH ranked AS (SELECT genre, RANK() OVER (ORDER BY COUNT(DISTINCT reader_id) DESC) AS rnk FROM loans GROUP BY genre) SELECT genre FROM ranked WHERE rnk <= 2
--> planned

SELECT genre, DENSE_RANK() OVER (ORDER BY SUM(fine) DESC) AS fine_rank FROM loans GROUP BY genre
--> planned

SELECT DISTINCT ON (branch) branch, genre, count(*) AS n FROM loans GROUP BY branch, genre ORDER BY branch, n DESC
--> planned

SELECT genre FROM loans GROUP BY genre HAVING COUNT(*) > 500 ORDER BY AVG(fine) DESC LIMIT 2
--> planned

-- # text
SELECT month, COUNT(*) > 2500 AS busy, LAG(COUNT(*) > 2500) OVER (ORDER BY month) AS busy_before FROM loans GROUP BY month
--> planned

SELECT b.branch FROM branches b WHERE NOT EXISTS (SELECT 1 FROM loans l WHERE l.branch = b.branch GROUP BY l.branch HAVING COUNT(*) > 5000)
--> planned

SELECT genre, COUNT(*) AS n FROM loans GROUP BY genre HAVING n > 1000
--> KH201

WITH busy AS (SELECT branch, COUNT(*) AS n FROM loans GROUP BY branch), big AS (SELECT * FROM busy WHERE n > 5000) SELECT b.branch, d.district FROM big b LEFT JOIN branches d ON d.branch = b.branch
--> planned

SELECT reader_id, COUNT(*) FROM loans GROUP BY reader_id HAVING COUNT(*) > 20 ORDER BY 2 DESC
--> KH202

SELECT loan_id, COUNT(*) FROM loans GROUP BY loan_id HAVING COUNT(*) > 1
--> KH202

SELECT string_agg(DISTINCT genre, ', ') FROM loans WHERE branch = 'Central'
--> KH101

SELECT COUNT(*) FROM loans
--> KH101

SELECT branch FROM loans GROUP BY branch HAVING avg(greatest(returned_at::date - due_on, 0)) > 2
--> planned

SELECT branch FROM loans WHERE returned_at::date > due_on GROUP BY branch HAVING avg(returned_at::date - due_on) > 5
--> planned

SELECT branch FROM loans WHERE returned_at IS NOT NULL GROUP BY branch HAVING avg(date_part('day', returned_at - borrowed_at)) > 20
--> planned

SELECT branch FROM loans WHERE returned_at < date_trunc('month', due_on) + interval '1 month' GROUP BY branch HAVING count(*) > 500
--> planned

SELECT branch FROM loans WHERE (date_trunc('month', due_on) + interval '1 month - 1 day')::date = due_on GROUP BY branch HAVING count(*) > 500
--> planned

SELECT genre FROM loans WHERE date_trunc('month', returned_at) = date_trunc('month', borrowed_at) + interval '1 month' GROUP BY genre HAVING count(*) > 200
--> planned

SELECT branch FROM loans GROUP BY branch HAVING count(*) FILTER (WHERE extract(month FROM due_on + interval '14 days') <> extract(month FROM due_on)) > 200
--> planned
