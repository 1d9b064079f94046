-- # Hints in words, each with what is typed by who follows it: a refused statement of the corpus, `--! ` and its hint,
-- # the statement that the hint leads to, and what becomes of it: "answered", "passed on", or a code that the hint names.
-- # `--@ ` names the catalog; after "with" stands what the hint asks the owner to declare.
-- # "elsewhere": what the hint says is done by no statement here.
--@ retail
SELECT width_bucket(quantity, 0, 10) AS band FROM sales GROUP BY 1 HAVING count(*) > 500
--! Group by a condition on quantity, or by steps of it: floor(quantity / 20).
SELECT floor(quantity / 20) AS band FROM sales GROUP BY 1 HAVING count(*) > 500
--> answered
SELECT country FROM sales country HAVING count(*) OVER () > 5
--! Group by one or more of: country, month. Or ask about the whole table: SELECT true FROM ... HAVING ...
SELECT country FROM sales country GROUP BY country HAVING count(*) > 5
--> answered
SELECT ward FROM visits GROUP BY ward HAVING corr(age, cost) > 0.5
--! Instead you can ask: avg(age) FILTER (WHERE cost > 10) > avg(age) FILTER (WHERE cost <= 10), with a middle value of cost in the place of 10.
SELECT ward FROM visits GROUP BY ward HAVING avg(age) FILTER (WHERE cost > 50) > avg(age) FILTER (WHERE cost <= 50) AND count(age) FILTER (WHERE cost > 50) >= 50 AND count(age) FILTER (WHERE cost <= 50) >= 50
--> answered
SELECT width_bucket(amount, '{5,10,50}'::numeric[]) FROM sales GROUP BY 1 HAVING count(*) > 40
--! Group by a condition on amount, or by steps of it: floor(amount / 100).
SELECT floor(amount / 100) FROM sales GROUP BY 1 HAVING count(*) > 40
--> answered
SELECT extract(year FROM age(invoice_date)) > 2 AS old FROM sales GROUP BY 1 HAVING count(*) > 200
--! Write the day: GROUP BY EXTRACT(YEAR FROM age(CAST('2026-01-01' AS DATE), invoice_date)) > 2.
SELECT extract(year FROM age(CAST('2026-01-01' AS DATE), invoice_date)) > 2 AS old FROM sales GROUP BY 1 HAVING count(*) > 200
--> answered
SELECT invoice_date < current_date - 30 AS old FROM sales GROUP BY 1 HAVING count(*) > 200
--! Write the day: GROUP BY invoice_date < CAST('2026-01-01' AS DATE) - 30.
SELECT invoice_date < CAST('2026-01-01' AS DATE) - 30 AS old FROM sales GROUP BY 1 HAVING count(*) > 200
--> answered
SELECT date_trunc('month', invoice_date::timestamp(0)) FROM sales GROUP BY 1 HAVING count(*) > 2000
--! Instead you can ask: GROUP BY extract(hour FROM invoice_date).
SELECT extract(hour FROM invoice_date) FROM sales GROUP BY 1 HAVING count(*) > 2000
--> answered
SELECT left(stock_code, 3) FROM sales WHERE left(stock_code, 2) IN ('S1', 'S2') GROUP BY left(stock_code, 3) HAVING count(*) > 5
--! Name the texts that you ask about: CASE WHEN left(stock_code, 3) IN ('A', 'B') THEN 'A or B' ELSE 'other' END.
SELECT CASE WHEN left(stock_code, 3) IN ('S1A', 'S2B') THEN 'S1A or S2B' ELSE 'other' END AS code FROM sales WHERE left(stock_code, 2) IN ('S1', 'S2') GROUP BY 1 HAVING count(*) > 5
--> answered
SELECT random() > 0.5 FROM sales GROUP BY 1 HAVING count(*) > 40
--! Group by declared columns.
SELECT country FROM sales GROUP BY 1 HAVING count(*) > 40
--> answered
SELECT country, rank() OVER (PARTITION BY quantity > 10 ORDER BY count(*) DESC) <= 2 FROM sales GROUP BY quantity > 10, country, quantity > 100
--! Partition by one or more of: quantity > 10, quantity > 100; country.
SELECT country, rank() OVER (PARTITION BY quantity > 10, quantity > 100 ORDER BY count(*) DESC) <= 2 FROM sales GROUP BY quantity > 10, country, quantity > 100
--> answered
SELECT country, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) > 15 FROM sales GROUP BY country
--! Add to this predicate: AND count(amount) >= 5000  Or ask for its opposite, and leave this to ELSE: CASE WHEN percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) <= 15 THEN 0 ELSE 1 END.
SELECT country, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) > 15 AND count(amount) >= 5000 FROM sales GROUP BY country
--> answered
SELECT country, (sum(amount) > 20000) IS TRUE, sum(amount) > 20000 IS NOT TRUE, NOT sum(amount) > 20000 FROM sales GROUP BY country
--! Add to this predicate: AND count(amount) >= 5000  Or ask for its opposite, and leave this to ELSE: CASE WHEN sum(amount) > 20000 THEN 0 ELSE 1 END.
SELECT country, sum(amount) > 20000, NOT sum(amount) > 20000 AND count(amount) >= 5000, CASE WHEN sum(amount) > 20000 THEN 0 ELSE 1 END FROM sales GROUP BY country
--> answered
SELECT country, sum(amount) - sum(quantity) > 100 FROM sales GROUP BY country
--! Add to this predicate: AND count(amount) >= 5000
SELECT country, sum(amount) - sum(quantity) > 100 AND count(amount) >= 5000 AND count(quantity) >= 5000 FROM sales GROUP BY country
--> answered
SELECT country, count(*) > 100 FROM sales GROUP BY country EXCEPT SELECT country, count(*) > 200 FROM sales WHERE gift GROUP BY country
--! Show the predicates of both in one question, and compare them in a query around it.
SELECT country, a FROM (SELECT country, count(*) > 100 AS a, count(*) FILTER (WHERE gift) > 200 AS b FROM sales GROUP BY country) q WHERE a <> b
--> answered
SELECT month, lag(count(*) > 100) OVER (PARTITION BY country ORDER BY month) FROM sales GROUP BY country, month ORDER BY count(*) DESC LIMIT 3
--! Write lag(count(*) > 100) OVER (PARTITION BY country ORDER BY month) around the question: SELECT q.*, ... FROM (...) AS q.
SELECT q.month, lag(q.busy) OVER (PARTITION BY q.country ORDER BY q.month) FROM (SELECT country, month, count(*) > 100 AS busy FROM sales GROUP BY country, month ORDER BY count(*) DESC LIMIT 3) AS q
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(NULL) > 40
--! Compare a sum or count of rows with a constant.
SELECT ward FROM visits GROUP BY ward HAVING count(age) > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(visits) > 40
--! Perhaps you meant visit_id.
SELECT ward FROM visits GROUP BY ward HAVING count(visit_id) > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING avg(age)::int > 65
--! Add: AND count(age) >= 100
SELECT ward FROM visits GROUP BY ward HAVING avg(age)::int > 65 AND count(age) >= 100
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(*) * count(*) > 400
--! Compare sums of aggregates, a mean or a ratio with a constant, for example count(*) > 40.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING sqrt(sum(cost)) > 50
--! Compare sums of aggregates, a mean or a ratio with a constant, for example sum(cost) > 40.
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) > 50
--> answered
SELECT ward FROM visits GROUP BY ward HAVING coalesce(avg(cost), 0) < 100
--! Leave COALESCE out, or ask count(cost) < 1 as a condition of its own, joined by OR.
SELECT ward FROM visits GROUP BY ward HAVING avg(cost) < 100 AND count(cost) >= 50
--> answered
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > avg(cost) + 200
--! Compare each with a number of its own.
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 65 AND avg(cost) > 200
--> answered
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / sum(age) > 0
--! Compare the ratio itself with a number above 0, or its numerator with 0.
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / sum(age) > 0.5 AND sum(age) >= 20000
--> answered
SELECT ward FROM visits GROUP BY ward HAVING (sum(cost) / sum(age) > 2) IS NOT TRUE
--! Ask for the groups that pass, and compare around the question.
SELECT ward FROM (VALUES ('A'), ('B')) v(ward) EXCEPT SELECT ward FROM (SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / sum(age) > 2 AND sum(age) >= 20000) q
--> answered
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / -sum(age) > 0.5
--! Divide by count(*), or by one sum such as sum(x), or a positive multiple of these.
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) FILTER (WHERE insured) / count(*) > 50
--> answered
SELECT country, month FROM sales GROUP BY country, month HAVING sum(amount) FILTER (WHERE amount > 5) / count(DISTINCT customer_id) FILTER (WHERE amount > 9) > 300
--! Write the same FILTER on both sides, or a condition in WHERE.
SELECT country, month FROM sales WHERE amount > 5 GROUP BY country, month HAVING sum(amount) / count(DISTINCT customer_id) > 300 AND count(DISTINCT customer_id) >= 500
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(*) > count(*)
--! Compare it with a constant.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING max(disease) > 'flu'
--! Use =, <>, IN or LIKE on disease.
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE disease LIKE 'flu%') > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING percentile_disc(0.1) WITHIN GROUP (ORDER BY age DESC) > 65
--! Order ascending and take 1 - p: percentile_disc(0.9) WITHIN GROUP (ORDER BY age) > 40.
SELECT ward FROM visits GROUP BY ward HAVING percentile_disc(0.9) WITHIN GROUP (ORDER BY age) > 65
--> answered
SELECT ward FROM visits GROUP BY ward HAVING median(age) + 1 > 40
--! Compare it with a constant, for example percentile_disc(0.5) WITHIN GROUP (ORDER BY age) > 50.
SELECT ward FROM visits GROUP BY ward HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY age) > 39
--> answered
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) + 1 > 50
--! Compare it alone: stddev_pop(age) > 10.
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > 10
--> answered
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > stddev_pop(cost)
--! Compare each with a number of its own: stddev_pop(x) > 10 AND avg(x) < 30.
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > 10 AND stddev_pop(cost) > 1500
--> answered
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(coalesce(age, 0)) > 50
--! Leave out rows without a value, which a variance does not count anyway, or ask the owner to expose the expression as a column of a view, with bounds.
SELECT ward FROM visits GROUP BY ward HAVING stddev_pop(age) > 50
--> answered
SELECT ward FROM visits GROUP BY ward HAVING array_agg(age) IS NOT NULL
--! Combine comparisons like count(*) > 100, sum(x) >= 5, avg(x) < 2 with AND, OR and NOT.
SELECT ward FROM visits GROUP BY ward HAVING count(age) > 40 AND NOT sum(age) < 5
--> answered
SELECT "Ward" FROM visits GROUP BY "Ward" HAVING count(*) > 40
--! Perhaps you meant ward.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40
--> answered
SELECT visits.ward FROM visits v GROUP BY visits.ward HAVING count(*) > 40
--! Qualify its columns with v, or not at all.
SELECT v.ward FROM visits v GROUP BY ward HAVING count(*) > 40
--> answered
SELECT ward FROM visits GROUP BY ALL HAVING count(*) > 40
--! Ask one question per grouping; UNION ALL may join them.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 UNION ALL SELECT NULL FROM visits HAVING count(*) > 40
--> answered
SELECT country FROM sales GROUP BY country HAVING NOT (country = 'France' AND count(*) > 8000)
--! Ask one question for each part, with the condition in its WHERE, and join the questions by UNION.
SELECT country FROM sales WHERE country = 'France' GROUP BY country HAVING NOT count(*) > 8000 AND count(*) >= 50 UNION SELECT DISTINCT country FROM sales WHERE country <> 'France'
--> answered
SELECT ward FROM visits GROUP BY ward HAVING insured AND count(*) > 40
--! Move conditions on rows to WHERE.
SELECT ward FROM visits WHERE insured GROUP BY ward HAVING count(*) > 40
--> answered
SELECT height * 2 FROM visits GROUP BY 1 HAVING count(*) > 40
--! Group by a condition on height, or by steps of it: floor(height / 0.5).
SELECT floor(height / 0.5) FROM visits GROUP BY 1 HAVING count(*) > 40
--> answered
SELECT floor(weight) FROM sales GROUP BY 1 HAVING count(*) > 40
--! Group by a condition on weight, or restrict it in WHERE from both sides and group by steps of it.
SELECT floor(weight / 10) FROM sales WHERE weight BETWEEN 0 AND 100 GROUP BY 1 HAVING count(*) > 4000
--> answered
SELECT floor(cost * 1000) FROM visits GROUP BY 1 HAVING count(*) > 40
--! Group by wider steps, or restrict the column in WHERE.
SELECT floor(cost / 10) FROM visits GROUP BY 1 HAVING count(*) > 40
--> answered
SELECT customer_id % 10 FROM sales GROUP BY 1 HAVING count(*) > 40
--! Group by a condition on customer_id, or restrict it in WHERE from both sides and group by steps of it.
SELECT customer_id > 10 FROM sales GROUP BY 1 HAVING count(*) > 40
--> answered
SELECT disease || 'x' FROM visits GROUP BY disease || 'x' HAVING count(*) > 40
--! Name the texts that you ask about: CASE WHEN disease || 'x' IN ('A', 'B') THEN 'A or B' ELSE 'other' END.
SELECT CASE WHEN disease || 'x' IN ('flux', 'coldx') THEN 'flu or cold' ELSE 'other' END AS kind FROM visits GROUP BY 1 HAVING count(*) > 40
--> answered
SELECT upper(disease) FROM visits GROUP BY 1 HAVING count(*) > 40
--! Name the texts that you ask about: CASE WHEN upper(disease) IN ('A', 'B') THEN 'A or B' ELSE 'other' END.
SELECT CASE WHEN upper(disease) IN ('FLU', 'COLD') THEN 'flu or cold' ELSE 'other' END AS kind FROM visits GROUP BY 1 HAVING count(*) > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(*) > ANY (ARRAY[40, 60])
--! Compare an aggregate with a number or a parameter.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(age, cost) > 40
--! Count the rows that have all of them: count(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL).
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE age IS NOT NULL AND cost IS NOT NULL) > 40
--> answered
SELECT country FROM sales GROUP BY country HAVING count(attributes) > 5
--! Compare count(*), or ask the owner to expose the column as a number, text, date or timestamp in a view.
SELECT country FROM sales GROUP BY country HAVING count(*) > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(*) > true
--! Compare with a number, such as count(*) > 100.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1e40
--! Compare with a number nearer to 0, or set a smaller keyhole.tolerance.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 4000
--> answered
SELECT ward FROM visits GROUP BY ward HAVING mode() WITHIN GROUP (ORDER BY age) > 65
--! Instead you can ask: count(*) FILTER (WHERE age = 40) > 1000, how many rows have a value.
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE age = 40) > 1000
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 'many'
--! Write the value itself, as a number, date '2026-12-31', timestamp '2026-12-31 23:59:59' or 'text'.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING count(*) > age
--! Compare an aggregate with a number, a parameter, or a public table's column joined by one of the keys.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40
--> answered
SELECT ward FROM visits WHERE arrived > '2026-13-05' GROUP BY ward HAVING count(*) > 40
--! Write year, month and day in this order: '2026-12-31' or '2026-12-31 23:59:59'.
SELECT ward FROM visits WHERE arrived > '2026-05-13' GROUP BY ward HAVING count(*) > 40
--> answered
SELECT ward FROM visits WHERE reference = 'not-a-uuid' GROUP BY ward HAVING count(*) > 40
--! Compare it with the text of a UUID: reference = '00000000-0000-0000-0000-000000000000'.
SELECT ward FROM visits WHERE reference = '00000000-0000-0000-0000-000000000000' GROUP BY ward HAVING count(*) > 40
--> answered
SELECT country FROM sales WHERE country IN (SELECT name FROM regions WHERE region = 'Nowhere') GROUP BY country HAVING count(*) > 8000
--! Put the question into a subquery and join its keys: SELECT ... FROM (SELECT key FROM ... GROUP BY key HAVING ...) q JOIN public_table ...
SELECT country FROM (SELECT country FROM sales GROUP BY country HAVING count(*) > 8000) q JOIN regions ON name = country WHERE region = 'Nowhere'
--> answered
SELECT country FROM sales JOIN regions ON country = region GROUP BY country HAVING count(*) > 400
--! Join regions by a column that is unique and not NULL. Put the question into a subquery and join its keys: SELECT ... FROM (SELECT key FROM ... GROUP BY key HAVING ...) q JOIN public_table ...
SELECT country FROM sales JOIN regions ON country = name GROUP BY country HAVING count(*) > 400
--> answered
SELEC 1
--! Run other statements on the source itself, with the owner's rights.
--> elsewhere
SELECT 1; SELECT 2
--! Send one statement at a time.
SELECT 2
--> passed on
COPY sales TO STDOUT
--! Write COPY (SELECT ...) TO STDOUT; in psql: \copy (SELECT ...) TO 'answer.csv' CSV HEADER
COPY (SELECT country FROM sales GROUP BY country HAVING count(*) > 1000) TO STDOUT
--> answered
COPY sales (country) FROM STDIN
--! Leave it out: nothing can be written here.
--> elsewhere
LOCK TABLE sales
--! Leave it out: nobody can change what is here.
--> elsewhere
SELECT * FROM dblink('', 'SELECT 1') AS t(a int)
--! Leave the call out.
SELECT 1 AS a
--> passed on
SELECT set_config('role', 'postgres', false)
--! Leave it as the owner set it. The settings of a question begin with keyhole.
SET keyhole.max_epsilon = 1
--> passed on
SELECT set_config('ro' || 'le', 'postgres', false)
--! Write the name as it is, as in set_config('keyhole.fnr', '0.02', false), or use SET.
SELECT set_config('keyhole.fnr', '0.02', false)
--> passed on
SET ROLE postgres
--! Connect as another analyst.
--> elsewhere
SET standard_conforming_strings = off
--! Write backslashes in E'...' strings.
SELECT E'a\nb'
--> passed on
SET keyhole.tolerance = 'lots'
--! Write for example '10%', '25', 'count=25, avg(age)=2', or of a difference '5% of bounds'.
SET keyhole.tolerance = 'count=25, avg(age)=2'
--> passed on
SET keyhole.speed = 1
--! Settings: keyhole.fnr, keyhole.fpr, keyhole.tolerance, keyhole.min_rows, keyhole.min_base, keyhole.guard, keyhole.mechanism, keyhole.test, keyhole.most_positives, keyhole.public_knowledge, keyhole.max_epsilon, keyhole.reuse, keyhole.numbers.
SET keyhole.min_rows = 20
--> passed on
COMMIT PREPARED 'x'
--! Use COMMIT.
COMMIT
--> passed on
EXPLAIN ANALYZE EXECUTE p(5)
--! EXPLAIN EXECUTE p(5);
EXPLAIN EXECUTE p(5)
--> passed on
SELECT country FROM ONLY sales GROUP BY country HAVING count(*) > 5
--! Write FROM, the table, and an alias if you like.
SELECT country FROM sales AS s GROUP BY country HAVING count(*) > 500
--> answered
SELECT country FROM sales TABLESAMPLE system (5) GROUP BY country HAVING count(*) > 5
--! Leave it out.
SELECT country FROM sales GROUP BY country HAVING count(*) > 500
--> answered
WITH sales AS (SELECT 1) SELECT * FROM sales
--! Give it another name.
WITH one AS (SELECT 1) SELECT * FROM one
--> passed on
SELECT name FROM sales RIGHT JOIN regions ON country = name GROUP BY name HAVING count(*) > 5
--! Write JOIN or LEFT JOIN, the private table first.
SELECT country FROM sales LEFT JOIN regions ON country = name GROUP BY country HAVING count(*) > 500
--> answered
SELECT name FROM regions LEFT JOIN sales ON country = name GROUP BY name HAVING count(*) > 5
--! Write count(sales.customer_id), with conditions on its rows in ON or FILTER; or JOIN.
SELECT country FROM regions LEFT JOIN sales ON country = name GROUP BY country HAVING count(sales.customer_id) > 500
--> answered
SELECT country FROM sales LEFT JOIN regions ON country = name AND region = 'West' GROUP BY country HAVING count(*) > 5
--! Move other conditions on public columns into WHERE or FILTER.
SELECT country FROM sales LEFT JOIN regions ON country = name GROUP BY country HAVING count(*) FILTER (WHERE region = 'West') > 500
--> answered
SELECT country FROM sales JOIN regions USING (country) GROUP BY country HAVING count(*) > 5
--! Write JOIN ... ON an equality.
SELECT country FROM sales JOIN regions ON country = name GROUP BY country HAVING count(*) > 500
--> answered
SELECT country FROM sales JOIN regions ON country = name WHERE region > 'A' GROUP BY country HAVING count(*) > 5
--! Use =, <>, IN or LIKE on region.
SELECT country FROM sales JOIN regions ON country = name WHERE region LIKE 'W%' GROUP BY country HAVING count(*) > 500
--> answered
SELECT region FROM sales s JOIN regions a ON country = a.name JOIN regions b ON country = b.name GROUP BY region HAVING count(*) > 5
--! Write a.region or b.region.
SELECT a.region FROM sales s JOIN regions a ON country = a.name JOIN regions b ON country = b.name GROUP BY a.region HAVING count(*) > 500
--> answered
SELECT sales.country FROM sales JOIN regions sales ON country = name GROUP BY country HAVING count(*) > 5
--! Give each table an alias.
SELECT s.country FROM sales s JOIN regions r ON country = name GROUP BY country HAVING count(*) > 500
--> answered
SELECT country FROM sales JOIN visits ON country = ward GROUP BY country HAVING count(*) > 5
--! Ask the owner to expose a view of the source that joins them, or ask two questions and join their keys: SELECT ... FROM (SELECT key FROM ... GROUP BY key HAVING ...) a JOIN (SELECT key FROM ... GROUP BY key HAVING ...) b ON ...
SELECT country FROM (SELECT country FROM sales GROUP BY country HAVING count(*) > 500) a JOIN (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 500) b ON country = ward
--> answered
SELECT country FROM sales JOIN regions AS r (a, b) ON country = a GROUP BY country HAVING count(*) > 5
--! Leave them out.
SELECT country FROM sales JOIN regions AS r ON country = name GROUP BY country HAVING count(*) > 500
--> answered
WITH regions AS (SELECT 1 AS name) SELECT country FROM sales JOIN regions ON country = name GROUP BY country HAVING count(*) > 5
--! Rename it, or write public.regions.
WITH regions AS (SELECT 1 AS name) SELECT country FROM sales JOIN public.regions ON country = name GROUP BY country HAVING count(*) > 500
--> answered
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > -1
--! Instead you can ask: avg(age) > 55
SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 55
--> answered
SELECT ward FROM visits GROUP BY ward HAVING 1.0 * count(*) FILTER (WHERE insured) / count(*) > 20
--! Correct the threshold, or leave the comparison out.
SELECT ward FROM visits GROUP BY ward HAVING 1.0 * count(*) FILTER (WHERE insured) / count(*) > 0.2
--> answered
SELECT country FROM sales GROUP BY country HAVING count(*) > (SELECT 8000)
--! Write the constant without SELECT: 8000.
SELECT country FROM sales GROUP BY country HAVING count(*) > 8000
--> answered
SELECT country FROM sales GROUP BY country HAVING count(*) > (SELECT 5)
--! Write the constant without SELECT: 5.
SELECT country FROM sales GROUP BY country HAVING count(*) > 5
--> answered
SELECT name FROM regions r WHERE EXISTS (SELECT 1 FROM sales WHERE country > r.name GROUP BY country HAVING count(*) > 5)
--! Qualify its columns with sales, or not at all.
SELECT name FROM regions r WHERE r.name IN (SELECT country FROM sales GROUP BY country HAVING count(*) > 500)
--> answered
SELECT country FROM sales WHERE quantity::text = '5' GROUP BY country HAVING count(*) > 5
--! Compare quantity itself.
SELECT country FROM sales WHERE quantity = 5 GROUP BY country HAVING count(*) > 500
--> answered
SELECT ward FROM visits WHERE disease::boolean GROUP BY ward HAVING count(*) > 40
--! Compare disease itself.
SELECT ward FROM visits WHERE disease = 'true' GROUP BY ward HAVING count(*) > 40
--> answered
SELECT ward FROM visits WHERE disease::numeric(30,2) > 3 GROUP BY ward HAVING count(*) > 40
--! Write it without the number of its digits: disease::numeric.
SELECT ward FROM visits WHERE disease::numeric > 3 GROUP BY ward HAVING count(*) > 40
--> answered
SELECT ward FROM visits WHERE extract(epoch FROM age(date '2026-06-01', arrived)) > 86400 GROUP BY ward HAVING count(*) > 40
--! Instead you can ask: extract(epoch FROM (CAST('2026-06-01' AS DATE))::timestamp - (arrived)), of days where age has months.
SELECT ward FROM visits WHERE extract(epoch FROM (CAST('2026-06-01' AS DATE))::timestamp - (arrived)) > 86400 GROUP BY ward HAVING count(*) > 40
--> answered
SELECT age(date '2026-06-01', arrived) FROM visits GROUP BY 1 HAVING count(*) > 40
--! Instead you can ask: GROUP BY age(CAST('2026-06-01' AS DATE), arrived) > interval '1 year'.
SELECT age(CAST('2026-06-01' AS DATE), arrived) > interval '1 year' FROM visits GROUP BY 1 HAVING count(*) > 40
--> answered
SELECT ward FROM visits WHERE round(height) = 2 GROUP BY ward HAVING count(*) > 40
--! Instead you can ask: round(height::numeric).
SELECT ward FROM visits WHERE round(height::numeric) = 2 GROUP BY ward HAVING count(*) > 40
--> answered
SELECT country FROM sales WHERE stock_code ~ '(a+)+' GROUP BY country HAVING count(*) > 5
--! Write stock_code LIKE '%a%'.
SELECT country FROM sales WHERE stock_code LIKE '%a%' GROUP BY country HAVING count(*) > 500
--> answered
SELECT country FROM sales WHERE stock_code ILIKE 'café' GROUP BY country HAVING count(*) > 5
--! Name the spellings: stock_code IN ('café', 'Café', 'CAFÉ').
SELECT country FROM sales WHERE stock_code IN ('café', 'Café', 'CAFÉ') GROUP BY country HAVING count(*) > 500
--> answered
SELECT country FROM sales WHERE stock_code < 'M' GROUP BY country HAVING count(*) > 5
--! Use =, <>, IN or LIKE on stock_code.
SELECT country FROM sales WHERE stock_code LIKE 'A%' GROUP BY country HAVING count(*) > 500
--> answered
SELECT country FROM sales WHERE country = 5 GROUP BY country HAVING count(*) > 5
--! Compare it with text: country = 'a'.
SELECT country FROM sales WHERE country = '5' GROUP BY country HAVING count(*) > 500
--> answered
SELECT country FROM sales WHERE stock_code LIKE 'a\' GROUP BY country HAVING count(*) > 5
--! Write the escape character twice if it stands for itself.
SELECT country FROM sales WHERE stock_code LIKE 'a\\' GROUP BY country HAVING count(*) > 500
--> answered
SELECT country FROM sales WHERE quantity = $1 GROUP BY country HAVING count(*) > 5
--! Bind a value, or write the constant into the statement.
SELECT country FROM sales WHERE quantity = 7 GROUP BY country HAVING count(*) > 500
--> answered
DECLARE "keyhole.part" CURSOR FOR SELECT 1
--! Choose another name.
DECLARE part CURSOR FOR SELECT 1
--> passed on
SELECT ward FROM visits WHERE @ age = 3 GROUP BY ward HAVING count(*) > 40
--! Write a comparison or a function in its place.
SELECT ward FROM visits WHERE abs(age) = 3 GROUP BY ward HAVING count(*) > 40
--> answered
SELECT extract(hour FROM arrived::date) AS h FROM visits GROUP BY 1 HAVING count(*) > 40
--! Group by the key itself, and compute from it around the question: SELECT ... FROM (<question>) AS q.
SELECT extract(hour FROM day) AS h FROM (SELECT day FROM visits GROUP BY day HAVING count(*) > 40) AS q
--> answered
SELECT country FROM sales WHERE invoice_date >= TO_TIMESTAMP('2011-1-1', 'YYYY-MM-DD') GROUP BY country HAVING count(*) > 400
--! Write date '2026-12-31' or timestamp '2026-12-31 23:59:59'.
SELECT country FROM sales WHERE invoice_date >= timestamp '2011-01-01 00:00:00' GROUP BY country HAVING count(*) > 400
--> answered
SELECT ward FROM visits WHERE visit_id::int > 3 GROUP BY ward HAVING count(*) > 400
--! Compare visit_id itself.
SELECT ward FROM visits WHERE visit_id > 3 GROUP BY ward HAVING count(*) > 400
--> answered
SELECT country FROM sales WHERE to_char(invoice_date, 'Mon YYYY') = 'Jun 2011' GROUP BY country HAVING count(*) > 400
--! Write the range: invoice_date >= '2011-06-01' AND invoice_date < '2011-07-01'.
SELECT country FROM sales WHERE invoice_date >= '2011-06-01' AND invoice_date < '2011-07-01' GROUP BY country HAVING count(*) > 400
--> answered
SELECT country FROM sales WHERE strpos(stock_code, 'S1') = 3 GROUP BY country HAVING count(*) > 400
--! Instead you can ask: position('S1' IN stock_code) > 0, which is true if the text contains it.
SELECT country FROM sales WHERE position('S1' IN stock_code) > 0 GROUP BY country HAVING count(*) > 400
--> answered
SELECT ward FROM visits WHERE disease ILIKE 'köln%' GROUP BY ward HAVING count(*) > 400
--! Name the spellings: disease LIKE 'köln%' OR disease LIKE 'Köln%' OR disease LIKE 'KÖLN%'.
SELECT ward FROM visits WHERE disease LIKE 'köln%' OR disease LIKE 'Köln%' OR disease LIKE 'KÖLN%' GROUP BY ward HAVING count(*) > 400
--> answered
SELECT ward FROM visits WHERE (ward, disease) IN (('A', 'flu', 1)) GROUP BY ward HAVING count(*) > 400
--! Give both the same number of members: (a, b) IN ((1, 'x'), (2, 'y')).
SELECT ward FROM visits WHERE (ward, disease) IN (('A', 'flu')) GROUP BY ward HAVING count(*) > 400
--> answered
SELECT ward FROM visits WHERE disease = ANY ('{{flu},{cold}}') GROUP BY ward HAVING count(*) > 400
--! Write '{1,2}' or ARRAY[1, 2].
SELECT ward FROM visits WHERE disease = ANY ('{flu,cold}') GROUP BY ward HAVING count(*) > 400
--> answered
SELECT country FROM sales GROUP BY country HAVING count(*) > 400 ORDER BY 1 FOR READ ONLY
--! Leave FOR READ ONLY away: a question changes nothing anyway.
SELECT country FROM sales GROUP BY country HAVING count(*) > 400 ORDER BY 1
--> answered
SELECT country FROM sales GROUP BY country HAVING count(*) > 8_000
--! Write numbers without underscores: 8000.
SELECT country FROM sales GROUP BY country HAVING count(*) > 8000
--> answered
SELECT ward FROM visits WHERE to_char(arrived, 'Dy') < 'Sun' GROUP BY ward HAVING count(*) > 400
--! Compare the time itself.
SELECT ward FROM visits WHERE extract(isodow FROM arrived) < 7 GROUP BY ward HAVING count(*) > 400
--> answered
SELECT ward FROM visits WHERE arrived::time >= '18:70' GROUP BY ward HAVING count(*) > 40
--! Write hours and minutes: '18:30'.
SELECT ward FROM visits WHERE arrived::time >= '18:30' GROUP BY ward HAVING count(*) > 40
--> answered
--@ retail with country in regions
SELECT country FROM sales NATURAL JOIN regions GROUP BY country HAVING count(*) > 5
--! Write JOIN ... USING (column).
SELECT country FROM sales JOIN regions USING (country) GROUP BY country HAVING count(*) > 500
--> answered
--@ retail with columns of a view
SELECT ward FROM visits GROUP BY ward HAVING sum(age / 2) > 40
--! Ask the owner to expose the expression as a column of a view, with bounds.
SELECT ward FROM visits GROUP BY ward HAVING sum(half_age) > 40
--> answered
SELECT ward FROM visits GROUP BY ward HAVING max(upper(disease)) > 'x'
--! Instead you can ask: count(*) FILTER (WHERE upper(disease) = 'x') > 40.
SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE upper(disease) = 'FLU') > 40
--> answered
SELECT country, max(CASE WHEN quantity > 5 THEN 1 ELSE 0 END) = 1 AS any_bulk FROM sales GROUP BY country
--! Instead you can ask: bool_or(x > 5) or bool_and(x > 5), for some row or for every row.
SELECT country, bool_or(quantity > 5) AS any_bulk FROM sales GROUP BY country
--> answered
SELECT country FROM sales JOIN regions ON customer_id = name GROUP BY country HAVING count(*) > 5
--! Ask the owner to expose one of them with the other's type.
SELECT country FROM sales JOIN regions ON customer_name = name GROUP BY country HAVING count(*) > 500
--> answered
--@ retail with coarser grids
SELECT ward FROM visits GROUP BY ward HAVING sum(cost * cost * cost * cost) > 5
--! Ask the owner to declare coarser grids or narrower bounds of these columns.
SELECT ward FROM visits GROUP BY ward HAVING sum(cost * cost * cost * cost) > 500000
--> answered
--@ retail with more keys
SELECT disease FROM visits GROUP BY disease HAVING count(*) > 40
--! Declare [tables.visits.columns.disease] key = { values = [...] }, values_from or range in keyhole.toml.
SELECT disease FROM visits GROUP BY disease HAVING count(*) > 40
--> answered
--@ rooms
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) = 0.125 * r.capacity
--! Write NOT (count(*) < 0.125 * r.capacity OR count(*) > 0.125 * r.capacity).
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING NOT (count(*) < 0.125 * r.capacity OR count(*) > 0.125 * r.capacity)
--> answered
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) / r.capacity > 1
--! Make one side a decimal: 1.0 * count(*) / r.capacity
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING 1.0 * count(*) / r.capacity > 1
--> answered
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) > r.capacity OR count(*) > 500
--! Leave these groups out: WHERE r.capacity IS NOT NULL
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room WHERE r.capacity IS NOT NULL GROUP BY v.room, r.capacity HAVING count(*) > r.capacity OR count(*) > 500
--> answered
SELECT v.hour FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.hour HAVING count(*) > max(r.capacity)
--! Add v.room to GROUP BY, so that every group has one r.capacity.
SELECT v.hour FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.hour, v.room HAVING count(*) > max(r.capacity)
--> answered
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, v.hour, r.capacity HAVING count(*) > r.capacity + v.hour
--! Compare with columns of a public table that is joined by one of the keys.
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, v.hour, r.capacity HAVING count(*) > r.capacity
--> answered
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.factor HAVING count(*) > 100 * r.factor
--! Compare with a public column of type integer or numeric.
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.share HAVING count(*) > 100 * r.share
--> answered
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room HAVING avg(v.age) + count(*) > max(r.capacity)
--! Compare each of them with a number, or a mean with a mean.
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room HAVING avg(v.age) > 60 AND count(*) > max(r.capacity)
--> answered
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING r.capacity * count(*) > 100
--! Move it to the other side: count(*) > 0.8 * capacity.
SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) > 0.8 * r.capacity
--> answered
--@ retail
SELECT ward FROM visits WHERE disease < ward GROUP BY ward HAVING count(*) > 40
--! Compare the columns themselves, or ask the owner for a derived column.
SELECT ward FROM visits WHERE disease <> ward GROUP BY ward HAVING count(*) > 40
--> answered
SELECT date_trunc('month', arrived AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin') FROM visits WHERE arrived >= '2026-01-01' AND arrived < '2026-07-01' GROUP BY 1 HAVING count(*) > 40
--! Instead you can ask: GROUP BY date_trunc('MONTH', arrived).
SELECT date_trunc('MONTH', arrived) FROM visits WHERE arrived >= '2026-01-01' AND arrived < '2026-07-01' GROUP BY date_trunc('MONTH', arrived) HAVING count(*) > 40
--> answered
SELECT ward FROM visits GROUP BY ward ORDER BY avg(cost / age) DESC LIMIT 2
--! Say how far it counts, with numbers of your own: least(cost / age, 1000), FILTER (WHERE cost / age IS NOT NULL).
SELECT ward FROM visits GROUP BY ward ORDER BY avg(least(cost / age, 50)) FILTER (WHERE cost / age IS NOT NULL) DESC LIMIT 2
--> answered
SELECT country FROM sales GROUP BY country ORDER BY avg(weight) DESC LIMIT 2
--! Say which values count, with numbers of your own: FILTER (WHERE weight BETWEEN 0 AND 1000).
SELECT country FROM sales GROUP BY country ORDER BY avg(weight) FILTER (WHERE weight BETWEEN 0 AND 20) DESC LIMIT 2
--> answered
SELECT ward FROM visits GROUP BY ward HAVING avg(arrived - timestamp '2026-01-01') > 5
--! Write interval '3 days', or compare seconds: extract(epoch FROM ...).
SELECT ward FROM visits WHERE arrived BETWEEN '2026-01-01' AND '2026-02-01' GROUP BY ward HAVING avg(arrived - timestamp '2026-01-01') > interval '5 days'
--> answered
--@ stays
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) v JOIN regions ON ward = name WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--! Instead you can ask: SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) AS v WHERE n > 3 GROUP BY ward HAVING count(*) > 100;
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2) AS v WHERE n > 3 GROUP BY ward HAVING count(*) > 100
--> answered
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n LIKE 'x' GROUP BY ward HAVING count(*) > 100
--! Compare n with = or a range: n BETWEEN ... AND ...
SELECT ward FROM (SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM stays GROUP BY ward, patient_id) v WHERE n BETWEEN 2 AND 4 GROUP BY ward HAVING count(*) > 100
--> answered
--@ stays with heights per unit
SELECT ward FROM (SELECT ward, patient_id, sum(height) AS total FROM stays GROUP BY 1, 2) v WHERE total > 3 GROUP BY ward HAVING count(*) > 100
--! Declare per_unit = [0, 500] under [tables.stays.columns.height] in keyhole.toml.
SELECT ward FROM (SELECT ward, patient_id, sum(height) AS total FROM stays GROUP BY 1, 2) v WHERE total > 3 GROUP BY ward HAVING count(*) > 100
--> answered
--@ people
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id OR p.sex = 'f' GROUP BY s.ward HAVING count(*) > 100
--! Write JOIN ... ON p.patient_id = s.patient_id.
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id GROUP BY s.ward HAVING count(*) > 100
--> answered
SELECT s.ward FROM stays s JOIN patients p USING (patient_id, ward) GROUP BY s.ward HAVING count(*) > 100
--! Join private tables on the columns of their privacy unit alone.
SELECT s.ward FROM stays s JOIN patients p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--> answered
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id AND p.ward = s.ward GROUP BY s.ward HAVING count(*) > 100
--! Compare each table's columns with constants, or ask the owner for a view with both.
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id AND p.sex = 'f' GROUP BY s.ward HAVING count(*) > 100
--> answered
SELECT s.ward FROM stays s LEFT JOIN patients p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--! Write JOIN, which counts the units with rows in both. Units without rows in one of them are left out.
SELECT s.ward FROM stays s JOIN patients p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--> answered
SELECT ward FROM stays JOIN patients USING (patient_id) GROUP BY ward HAVING count(*) > 100
--! Write stays.ward or patients.ward.
SELECT stays.ward FROM stays JOIN patients USING (patient_id) GROUP BY stays.ward HAVING count(*) > 100
--> answered
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id WHERE patient_id = 3 GROUP BY s.ward HAVING count(*) > 100
--! Write s.patient_id or p.patient_id.
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id WHERE s.patient_id = 3 GROUP BY s.ward HAVING count(*) > 100
--> answered
SELECT s.ward FROM stays s JOIN patients p USING (patient_id) JOIN labs l ON l.person = 3 GROUP BY s.ward HAVING count(*) > 100
--! Write JOIN ... ON l.person = s.patient_id.
SELECT s.ward FROM stays s JOIN patients p USING (patient_id) JOIN labs l ON l.person = s.patient_id GROUP BY s.ward HAVING count(*) > 100
--> answered
SELECT s.ward FROM stays s JOIN (SELECT * FROM patients LIMIT 9) p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--! Put the question into a subquery and join its keys: SELECT ... FROM (SELECT key FROM ... GROUP BY key HAVING ...) q JOIN public_table ...
SELECT s.ward FROM stays s JOIN patients p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--> answered
