-- # Spellings: statements with the same number are one question, with one fingerprint; others are other questions.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40
--> 1
select v.WARD from public.visits as v group by 1 having COUNT( 1 ) > 40
--> 1
SELECT ward AS w FROM visits GROUP BY w HAVING NOT 40 >= count(*) ORDER BY 1 LIMIT 5
--> 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) - 10 > 60 / 2 AND true
--> 1
SELECT * FROM (SELECT "ward" FROM "visits" GROUP BY "ward" HAVING COUNT(*) > 40.9) q
--> 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 41
--> another threshold
SELECT ward FROM visits GROUP BY ward HAVING count(*) >= 40
--> another operator
SELECT ward FROM visits GROUP BY ward HAVING count(age) > 40
--> another count
SELECT ward FROM visits WHERE ward <> 'A' GROUP BY ward HAVING count(*) > 40
--> fewer keys
SELECT ward FROM visits GROUP BY ward HAVING ward <> 'A' AND count(*) > 40
--> fewer keys
SELECT ward FROM visits WHERE ward IN ('C', 'B', 'B') GROUP BY ward HAVING count(*) > 40
--> fewer keys
SELECT ward FROM visits GROUP BY ward, day HAVING count(*) > 40
--> keys of two columns
SELECT day FROM visits GROUP BY day, ward HAVING count(*) > 40
--> keys in another order
SELECT arrived::date FROM visits GROUP BY ward, arrived::date HAVING count(*) > 40
--> keys of two columns
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE insured) > 40
--> filtered
SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN insured THEN 1 ELSE 0 END) > 40
--> filtered
SELECT ward FROM visits GROUP BY ward HAVING count(CASE WHEN insured THEN 1 END) > 40
--> filtered
SELECT ward FROM visits GROUP BY ward HAVING sum(insured::int) > 40
--> filtered
SELECT ward FROM visits GROUP BY ward HAVING 0.5 * count(*) FILTER (WHERE insured = true) > 20
--> filtered
SELECT ward FROM visits WHERE insured GROUP BY ward HAVING count(*) > 40
--> filtered in WHERE: the same integers, another question
SELECT ward FROM visits WHERE insured IS TRUE GROUP BY ward HAVING count(*) > 40
--> filtered in WHERE: the same integers, another question
SELECT ward FROM visits WHERE insured AND insured = true AND true GROUP BY ward HAVING count(*) > 40
--> filtered in WHERE: the same integers, another question
SELECT ward FROM visits WHERE NOT insured GROUP BY ward HAVING count(*) > 40
--> the others
SELECT ward FROM visits WHERE insured IS NOT TRUE GROUP BY ward HAVING count(*) > 40
--> the others and the unknown
SELECT ward FROM visits WHERE age > 65 AND disease IN ('flu', 'cold') GROUP BY ward HAVING count(*) > 40
--> two conditions
SELECT ward FROM visits WHERE disease IN ('cold', 'flu', 'cold') AND 65 < age GROUP BY ward HAVING count(*) > 40
--> two conditions
SELECT ward FROM visits WHERE age >= 66 AND (disease = 'flu' OR disease = 'cold') GROUP BY ward HAVING count(*) > 40
--> two conditions, in other words
SELECT ward FROM visits WHERE age BETWEEN 18 AND 65 GROUP BY ward HAVING count(*) > 40
--> between
SELECT ward FROM visits WHERE age <= 65 AND age >= 18 GROUP BY ward HAVING count(*) > 40
--> between
SELECT ward FROM visits WHERE arrived >= '2026-01-05' GROUP BY ward HAVING count(*) > 40
--> since
SELECT ward FROM visits WHERE arrived >= date '2026-01-04' + interval '1 day' GROUP BY ward HAVING count(*) > 40
--> since
SELECT ward FROM visits WHERE arrived >= timestamp '2026-01-05 00:00:00' GROUP BY ward HAVING count(*) > 40
--> since
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 65
--> mean
SELECT ward FROM visits GROUP BY ward HAVING avg(visits.age) - 65.0 > 0
--> mean
SELECT ward FROM visits GROUP BY ward HAVING NOT avg(age) <= 65
--> mean
SELECT ward FROM visits GROUP BY ward HAVING 2 * avg(age) > 130
--> mean
SELECT ward FROM visits GROUP BY ward HAVING sum(age)::numeric / count(age) > 65
--> mean
SELECT ward FROM visits GROUP BY ward HAVING sum(age)::numeric / count(*) > 65
--> a mean over rows without ages too
SELECT ward FROM visits GROUP BY ward HAVING avg(coalesce(age, 0)) > 65
--> a mean over rows without ages too
SELECT ward FROM visits GROUP BY ward HAVING avg(age) FILTER (WHERE age IS NOT NULL) > 65
--> mean of the present, in other words
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 AND sum(age) > 4000
--> both
SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000 AND (count(*) > 40)
--> both
SELECT ward FROM visits GROUP BY ward HAVING NOT (NOT count(*) > 40 OR NOT sum(age) > 4000)
--> both
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 AND sum(age) > 4000 AND (count(*) > 40 OR avg(age) > 5)
--> both
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 INTERSECT SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000
--> both
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 OR sum(age) > 4000
--> either
SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000 UNION (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40)
--> either
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 AND coalesce(sum(age), 0) <= 4000
--> one without the other
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 EXCEPT SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 4000
--> one without the other
SELECT ward FROM visits GROUP BY ward HAVING count(*) BETWEEN 40 AND 60
--> range
SELECT ward FROM visits GROUP BY ward HAVING count(*) >= 40 AND NOT count(*) > 60
--> range
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE age > 65) > count(*) FILTER (WHERE age < 18) + 20
--> difference
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE age > 65) - count(*) FILTER (WHERE 18 > age) > 20
--> difference
SELECT ward FROM visits GROUP BY ward HAVING max(age) > 100
--> hinge
SELECT ward FROM visits GROUP BY ward HAVING bool_or(age > 100)
--> hinge
SELECT ward FROM visits GROUP BY ward HAVING 100 < max(age)
--> hinge
SELECT month FROM sales GROUP BY month HAVING count(DISTINCT customer_id) > 30
--> units
SELECT date_trunc('month', invoice_date) FROM sales GROUP BY 1 HAVING count(DISTINCT (customer_id, month)) > 30
--> units
SELECT month FROM capped_sales GROUP BY month HAVING count(DISTINCT customer_id) > 30
--> units of another table

SELECT month FROM sales GROUP BY month HAVING count(*) > 2 * (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM (SELECT count(*) AS n FROM sales GROUP BY month) g)
--> twice the median of groups

SELECT month FROM sales GROUP BY month HAVING count(*) > 2 * (SELECT percentile_cont(0.50) WITHIN GROUP (ORDER BY n DESC) FROM (SELECT count(*) AS n FROM sales GROUP BY month) g)
--> twice the median of groups

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), s AS (SELECT median(n) AS p FROM m) SELECT month FROM m CROSS JOIN s WHERE n > 2 * s.p
--> twice the median of groups

SELECT month FROM sales GROUP BY month HAVING count(*) > 2 * (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM (SELECT count(*) AS n FROM sales GROUP BY month) g)
--> twice the lower median of groups

SELECT month FROM (SELECT month, (count(*) - avg(count(*)) OVER ()) / stddev(count(*)) OVER () AS z FROM sales GROUP BY month) q WHERE z > 2
--> two deviations above the mean of groups

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), s AS (SELECT avg(n) AS a, stddev_samp(n) AS d FROM m) SELECT month FROM m, s WHERE (n - a) / d > 2
--> two deviations above the mean of groups
