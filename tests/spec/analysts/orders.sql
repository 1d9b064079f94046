-- # What analysts write about a shop's order lines, customers protected, by the families of docs/asking.md.
-- # numbers
SELECT region, SUM(total) AS revenue FROM orders GROUP BY region HAVING SUM(total) > 100000 ORDER BY revenue DESC
--> planned

SELECT category, COUNT(*) AS num_orders, AVG(price) AS avg_price FROM orders WHERE status <> 'cancelled' GROUP BY category HAVING COUNT(*) > 1000
--> planned

SELECT region, category, COUNT(DISTINCT customer_id) AS buyers FROM orders GROUP BY region, category HAVING COUNT(DISTINCT customer_id) > 150 ORDER BY region, buyers DESC
--> planned

SELECT month, SUM(quantity) AS pieces, SUM(total) AS revenue FROM orders GROUP BY month HAVING SUM(total) >= 50000 ORDER BY month
--> planned

SELECT t.category, t.revenue FROM (SELECT category, SUM(total) AS revenue FROM orders GROUP BY category) AS t WHERE t.revenue > 75000 ORDER BY t.revenue DESC
--> planned

SELECT channel, COUNT(*) AS orders, SUM(total) / COUNT(*) AS basket FROM orders GROUP BY channel HAVING SUM(total) / COUNT(*) > 60
--> planned

SELECT category, sum(total) total_sales, count(distinct customer_id) customers, round(avg(discount) * 100, 1) pct FROM orders GROUP BY category HAVING avg(discount) > 0.1
--> planned

-- # key
SELECT CASE WHEN total >= 200 THEN 'large' WHEN total >= 50 THEN 'medium' ELSE 'small' END AS size, region FROM orders GROUP BY 1, 2 HAVING count(*) > 300
--> planned

SELECT quantity > 1 AS several, category FROM orders GROUP BY quantity > 1, category HAVING count(DISTINCT customer_id) > 100
--> planned

SELECT discount > 0 AS discounted, channel FROM orders GROUP BY 1, 2 HAVING sum(total) > 20000
--> planned

SELECT round(discount, 1) AS off FROM orders GROUP BY 1 HAVING count(*) > 200
--> planned

SELECT floor(price / 50) * 50 AS price_band, count(*) FROM orders GROUP BY 1 HAVING count(*) > 500 ORDER BY 1
--> planned

SELECT width_bucket(total, 0, 1000, 5) AS b FROM orders GROUP BY b HAVING count(DISTINCT customer_id) > 80
--> planned

SELECT lower(category) AS category FROM orders GROUP BY lower(category) HAVING count(*) > 500
--> planned

SELECT concat(region, '/', channel) AS market FROM orders GROUP BY 1 HAVING sum(total) > 30000
--> planned

SELECT region || ' ' || category AS label FROM orders GROUP BY 1 HAVING count(*) > 300
--> planned

SELECT CASE WHEN region IN ('north', 'east') THEN 'one' ELSE 'two' END AS half, month FROM orders GROUP BY 1, 2 HAVING sum(total) > 40000
--> planned

SELECT date_trunc('quarter', month) AS quarter, category FROM orders GROUP BY 1, 2 HAVING sum(total) > 50000
--> planned

SELECT extract(month FROM ordered_at) AS m FROM orders GROUP BY 1 HAVING count(*) > 800
--> planned

SELECT extract(hour FROM ordered_at) >= 18 AS evening, channel FROM orders GROUP BY 1, 2 HAVING count(*) > 300
--> planned

SELECT ordered_at::date AS d, count(*) FROM orders WHERE ordered_at >= '2024-11-25' AND ordered_at < '2024-12-02' GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT to_char(ordered_at, 'YYYY-MM') AS ym, sum(total) FROM orders WHERE ordered_at >= '2024-01-01' AND ordered_at < '2025-01-01' GROUP BY 1 HAVING sum(total) > 60000 ORDER BY 1
--> planned

SELECT to_char(ordered_at, 'Dy') AS dow FROM orders GROUP BY 1 HAVING count(*) > 1000
--> planned

SELECT gift, channel FROM orders GROUP BY gift, channel HAVING count(DISTINCT customer_id) > 100
--> planned

SELECT coupon IS NOT NULL AS with_coupon, category FROM orders GROUP BY 1, 2 HAVING count(*) > 200
--> planned

SELECT CASE WHEN coupon IS NULL THEN 'none' WHEN coupon LIKE 'VIP%' THEN 'vip' ELSE 'other' END AS coupon_kind FROM orders GROUP BY 1 HAVING sum(total) > 50000
--> planned

SELECT nullif(status, 'cancelled') AS status FROM orders GROUP BY 1 HAVING count(*) > 500
--> planned

SELECT replace(channel, 'web', 'online') AS channel FROM orders GROUP BY 1 HAVING count(*) > 300
--> planned

SELECT sku LIKE 'B%' AS is_book FROM orders GROUP BY 1 HAVING count(*) > 500
--> planned

SELECT length(category) AS letters FROM orders GROUP BY 1 HAVING count(*) > 500
--> planned

SELECT date_part('dow', ordered_at) IN (0, 6) AS weekend FROM orders GROUP BY 1 HAVING avg(total) > 60
--> planned

SELECT least(quantity, 10) AS q FROM orders GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT (price * quantity > 500) AS big, region FROM orders GROUP BY 1, 2 HAVING count(*) > 100
--> planned

-- # row
SELECT region FROM orders WHERE total <> price * quantity GROUP BY region HAVING count(*) > 50
--> planned

SELECT category FROM orders WHERE price * quantity * (1 - discount) > 300 GROUP BY category HAVING count(*) > 100
--> planned

SELECT channel FROM orders WHERE shipped_at - ordered_at > interval '3 days' GROUP BY channel HAVING count(*) > 200
--> planned

SELECT region FROM orders WHERE shipped_at IS NULL AND ordered_at < DATE '2024-12-01' - 30 GROUP BY region HAVING count(*) > 50
--> planned

SELECT category FROM orders WHERE upper(coupon) = 'SUMMER' GROUP BY category HAVING count(DISTINCT customer_id) > 50
--> planned

SELECT category FROM orders WHERE split_part(sku, '-', 1) = 'EU' GROUP BY category HAVING count(*) > 100
--> planned

SELECT region FROM orders WHERE date_trunc('month', shipped_at) <> date_trunc('month', ordered_at) GROUP BY region HAVING count(*) > 100
--> planned

SELECT region FROM orders WHERE coalesce(discount, 0) > 0.2 GROUP BY region HAVING count(*) > 100
--> planned

SELECT region FROM orders WHERE total / quantity > 100 GROUP BY region HAVING count(*) > 50
--> planned

SELECT region FROM orders WHERE mod(quantity, 12) = 0 GROUP BY region HAVING count(*) > 50
--> planned

SELECT region FROM orders GROUP BY region HAVING sum(price * quantity) > 200000
--> planned

SELECT channel FROM orders GROUP BY channel HAVING avg(shipped_at - ordered_at) > interval '2 days'
--> planned

SELECT category FROM orders GROUP BY category HAVING sum(total * discount) > 5000
--> planned

SELECT category FROM orders WHERE substring(sku, 1, 2) = 'GA' OR right(sku, 1) = 'X' GROUP BY category HAVING count(*) > 50
--> planned

SELECT region FROM orders WHERE extract(day FROM ordered_at) <= 7 GROUP BY region HAVING sum(total) > 20000
--> planned

-- # guard
SELECT category FROM orders GROUP BY category HAVING avg(price) >= 40
--> planned

SELECT category FROM orders GROUP BY category HAVING count(*) FILTER (WHERE status = 'returned') * 1.0 / count(*) > 0.1
--> planned

SELECT category FROM orders GROUP BY category HAVING sum(CASE WHEN status = 'returned' THEN total ELSE 0 END) / sum(total) > 0.08
--> planned

SELECT region FROM orders GROUP BY region HAVING sum(total) / count(DISTINCT customer_id) > 250
--> planned

SELECT region FROM orders GROUP BY region HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY total) >= 40
--> planned

SELECT region FROM orders GROUP BY region HAVING variance(quantity) > 20
--> planned

SELECT region FROM orders GROUP BY region HAVING avg(total) FILTER (WHERE channel = 'web') > avg(total) FILTER (WHERE channel = 'store')
--> planned

SELECT region FROM orders GROUP BY region HAVING min(price) > 1
--> planned

SELECT category FROM orders GROUP BY category HAVING every(quantity > 0)
--> planned

SELECT category FROM orders GROUP BY category HAVING avg(total) > 50 IS NOT FALSE
--> KH206

SELECT category FROM orders GROUP BY category HAVING (count(*) > 1000) = (sum(total) > 60000)
--> planned

SELECT category FROM orders GROUP BY category HAVING count(*) / count(DISTINCT customer_id) >= 2
--> planned

-- # rank
SELECT category FROM orders GROUP BY category ORDER BY sum(total) DESC LIMIT 3
--> planned

SELECT region, category FROM (SELECT region, category, rank() OVER (PARTITION BY region ORDER BY sum(total) DESC) rk FROM orders GROUP BY region, category) s WHERE rk <= 2
--> planned

SELECT category, count(DISTINCT customer_id) AS c FROM orders GROUP BY category ORDER BY c DESC LIMIT 2
--> planned

SELECT category, avg(discount) FROM orders GROUP BY category HAVING count(*) > 500 ORDER BY 2 DESC LIMIT 2
--> planned

SELECT region, ntile(4) OVER (ORDER BY sum(total) DESC) AS quartile FROM orders GROUP BY region
--> planned

SELECT DISTINCT ON (region) region, category FROM orders GROUP BY region, category ORDER BY region, sum(total) DESC
--> planned

SELECT region, channel, grouping(channel) FROM orders GROUP BY CUBE (region, channel) HAVING sum(total) > 50000
--> planned

SELECT * FROM (SELECT category, row_number() OVER (ORDER BY count(*) DESC) AS place FROM orders GROUP BY category) r WHERE place <= 3
--> planned

WITH m AS (SELECT category, sum(total) AS revenue FROM orders WHERE status = 'paid' GROUP BY category) SELECT category, revenue, dense_rank() OVER (ORDER BY revenue DESC) AS rk FROM m ORDER BY rk LIMIT 3
--> planned

WITH by_month AS (SELECT region, month, count(*) AS n FROM orders GROUP BY 1, 2) SELECT DISTINCT ON (region) region, month, n FROM by_month ORDER BY region, n DESC
--> planned

WITH a AS (SELECT region, category, sum(total) AS amt FROM orders GROUP BY region, category), b AS (SELECT a.*, rank() OVER (PARTITION BY region ORDER BY amt DESC) AS rk FROM a) SELECT region, category FROM b WHERE rk = 1 AND amt > 50000
--> planned

SELECT * FROM (SELECT m.*, row_number() OVER (PARTITION BY region ORDER BY revenue DESC) AS rn FROM (SELECT region, category, count(*) AS n, sum(total) AS revenue FROM orders GROUP BY 1, 2) m WHERE category <> 'Toys') q WHERE rn <= 2 AND n >= 300 ORDER BY region, rn
--> planned

WITH base AS (SELECT category, count(*) AS n FROM orders GROUP BY category), kept AS (SELECT * FROM base) SELECT category, n FROM kept WHERE n BETWEEN 300 AND 3000 ORDER BY n DESC
--> planned

SELECT category, rank() OVER (ORDER BY n DESC) AS by_orders, rank() OVER (ORDER BY s DESC) AS by_revenue FROM (SELECT category, count(*) AS n, sum(total) AS s FROM orders GROUP BY category) q
--> KH106

SELECT channel, status, count(*) AS n, round(100.0 * count(*) / sum(count(*)) OVER (PARTITION BY channel), 1) AS pct FROM orders GROUP BY channel, status HAVING count(*) > 500 ORDER BY channel, pct DESC
--> planned

WITH m AS (SELECT category, sum(total) AS revenue, count(*) AS n FROM orders GROUP BY category HAVING sum(total) > 50000) SELECT category, revenue / n AS per_order, revenue / sum(revenue) OVER () AS share FROM m ORDER BY share DESC
--> planned

SELECT category FROM (SELECT category, sum(total) AS s, sum(sum(total)) OVER () AS whole FROM orders GROUP BY category) q WHERE s > 0.3 * whole
--> planned

-- # text
SELECT month, sum(total) > 60000 AS good, lag(sum(total) > 60000) OVER (ORDER BY month) AS before FROM orders GROUP BY month
--> planned

SELECT c.region FROM (VALUES ('north'), ('south')) AS c(region) WHERE EXISTS (SELECT 1 FROM orders o WHERE o.region = c.region GROUP BY o.region HAVING count(*) > 500)
--> planned

SELECT category, count(*) AS n FROM orders GROUP BY category HAVING n > 1000
--> KH201
SELECT channel FROM orders WHERE shipped_at - ordered_at BETWEEN interval '0 days' AND interval '30 days' GROUP BY channel HAVING avg(shipped_at - ordered_at) > interval '2 days'
--> planned
SELECT channel FROM orders WHERE shipped_at >= ordered_at AND shipped_at - ordered_at < interval '3 weeks' GROUP BY channel HAVING extract(epoch FROM avg(shipped_at - ordered_at)) / 3600 > 36
--> planned
SELECT channel FROM orders GROUP BY channel HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY shipped_at - ordered_at) > interval '1.5 days'
--> planned
SELECT category FROM orders GROUP BY category HAVING max(shipped_at - ordered_at) > interval '20 days'
--> planned

SELECT region FROM orders GROUP BY region HAVING avg(total / nullif(quantity, 0)) > 20
--> planned

SELECT region FROM orders GROUP BY region HAVING avg(least(shipped_at::date - ordered_at::date, 30)) > 2
--> planned

-- # units that did, and units that did not
SELECT region FROM orders WHERE customer_id IN (SELECT customer_id FROM orders GROUP BY customer_id HAVING max(ordered_at) < TIMESTAMP '2024-06-01') GROUP BY region HAVING count(DISTINCT customer_id) > 50
--> planned

SELECT o.category FROM orders o LEFT JOIN (SELECT DISTINCT customer_id FROM orders WHERE status = 'returned') r ON r.customer_id = o.customer_id WHERE r.customer_id IS NULL GROUP BY o.category HAVING count(*) > 100
--> planned

SELECT channel FROM orders WHERE customer_id IN (SELECT customer_id FROM orders WHERE sku = 'A1') AND customer_id NOT IN (SELECT customer_id FROM orders WHERE sku = 'B2') GROUP BY channel HAVING count(DISTINCT customer_id) > 30
--> planned

SELECT region FROM orders WHERE customer_id IN (SELECT customer_id FROM (SELECT customer_id, sum(total) AS spent FROM orders GROUP BY customer_id) t WHERE spent > 500) GROUP BY region HAVING count(DISTINCT customer_id) > 30
--> planned

SELECT region FROM orders o WHERE o.customer_id IN (SELECT customer_id FROM orders GROUP BY customer_id HAVING count(*) = 1) AND gift GROUP BY region HAVING count(*) > 30
--> planned

SELECT category FROM orders WHERE customer_id IN (SELECT customer_id FROM orders WHERE coupon IS NOT NULL GROUP BY customer_id HAVING count(*) * 2 > 5) GROUP BY category HAVING sum(total) > 10000
--> planned

-- # values of one unit's own rows
WITH first AS (SELECT customer_id, min(month) AS cohort FROM orders GROUP BY customer_id) SELECT f.cohort, o.month, count(DISTINCT o.customer_id) AS active FROM orders o JOIN first f USING (customer_id) GROUP BY 1, 2 HAVING count(DISTINCT o.customer_id) > 50 ORDER BY 1, 2
--> planned

SELECT o.month FROM orders o JOIN (SELECT customer_id, min(month) AS cohort FROM orders GROUP BY customer_id) f USING (customer_id) WHERE o.month >= f.cohort + interval '1 month' GROUP BY o.month HAVING count(DISTINCT o.customer_id) > 60
--> planned

WITH cohorts AS (SELECT customer_id, date_trunc('quarter', min(ordered_at)) AS cohort FROM orders WHERE status <> 'cancelled' GROUP BY customer_id) SELECT cohort, o.category FROM cohorts c JOIN orders o ON o.customer_id = c.customer_id GROUP BY 1, 2 HAVING count(*) > 100
--> planned

SELECT category FROM (SELECT category, customer_id, row_number() OVER (PARTITION BY customer_id ORDER BY ordered_at) AS n FROM orders) q WHERE n = 1 GROUP BY category HAVING count(*) > 80
--> planned

SELECT category, n FROM (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY ordered_at) AS n FROM orders WHERE status = 'paid') q WHERE n <= 3 GROUP BY category, n HAVING sum(total) > 2000
--> planned

SELECT channel FROM (SELECT DISTINCT ON (customer_id) customer_id, channel FROM orders ORDER BY customer_id, ordered_at DESC) latest GROUP BY channel HAVING count(*) > 50
--> planned

SELECT n_orders, count(*) AS customers FROM (SELECT customer_id, count(*) AS n_orders FROM orders GROUP BY customer_id) q GROUP BY n_orders HAVING count(*) > 30 ORDER BY n_orders
--> planned

SELECT CASE WHEN n = 1 THEN '1' WHEN n <= 5 THEN '2-5' ELSE '6+' END AS orders FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) q GROUP BY 1 HAVING count(*) > 30
--> planned

SELECT least(n, 10) AS orders FROM (SELECT customer_id, count(*) AS n FROM orders WHERE gift GROUP BY customer_id) q GROUP BY 1 HAVING count(*) > 30
--> planned

SELECT date_trunc('month', last) AS left_in FROM (SELECT customer_id, max(ordered_at) AS last FROM orders GROUP BY customer_id) q GROUP BY 1 HAVING count(*) > 40
--> planned

SELECT region FROM (SELECT region, total, avg(total) OVER (PARTITION BY customer_id) AS own FROM orders) q WHERE total > 2 * own GROUP BY region HAVING count(*) > 60
--> planned

SELECT region FROM (SELECT region, ordered_at - lag(ordered_at) OVER (PARTITION BY customer_id ORDER BY ordered_at) AS gap FROM orders) q WHERE gap > interval '60 days' GROUP BY region HAVING count(*) > 60
--> planned

SELECT was, category FROM (SELECT category, lag(category) OVER (PARTITION BY customer_id ORDER BY ordered_at) AS was FROM orders) q WHERE was <> category GROUP BY 1, 2 HAVING count(*) > 60
--> planned

SELECT month = cohort AS is_new, month FROM (SELECT customer_id, month, min(month) OVER (PARTITION BY customer_id) AS cohort FROM orders) q GROUP BY 1, 2 HAVING count(DISTINCT customer_id) > 50
--> planned

SELECT region FROM (SELECT region, row_number() OVER (PARTITION BY region ORDER BY ordered_at) AS n FROM orders) q WHERE n = 1 GROUP BY region HAVING count(*) > 80
--> KH107

SELECT region FROM orders o WHERE total > (SELECT avg(p.total) FROM orders p WHERE p.customer_id = o.customer_id) GROUP BY region HAVING count(*) > 100
--> planned

SELECT floor(spent / 500) * 500 AS from_, count(*) FROM (SELECT customer_id, sum(total) AS spent FROM orders GROUP BY customer_id) q GROUP BY 1 HAVING count(*) > 40
--> planned

SELECT CASE WHEN total < 25 THEN '0-25' WHEN total < 100 THEN '25-100' WHEN total < 500 THEN '100-500' ELSE '500+' END AS basket, channel, count(*) FROM orders GROUP BY 1, 2 HAVING count(*) > 200 ORDER BY 2, 1
--> planned

SELECT date_trunc('quarter', ordered_at)::date AS q, region, round(avg(total), 2) AS aov FROM orders GROUP BY 1, 2 HAVING avg(total) > 80 AND count(*) > 500
--> planned

SELECT region, coalesce(coupon, '') <> '' AS with_coupon FROM orders GROUP BY 1, 2 HAVING avg(discount) > 0.15
--> planned

SELECT category, extract(day FROM shipped_at - ordered_at) > 3 AS slow FROM orders WHERE shipped_at IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 150
--> planned

SELECT category FROM orders GROUP BY category HAVING sum(CASE WHEN status = 'returned' THEN total ELSE 0 END) / nullif(sum(total), 0) >= 0.1
--> planned

SELECT category, sum(price * quantity * (1 - discount)) AS net FROM orders GROUP BY category HAVING sum(price * quantity * (1 - discount)) > 10000 ORDER BY net DESC
--> planned

SELECT month, median FROM (SELECT month, percentile_cont(0.5) WITHIN GROUP (ORDER BY total) AS median FROM orders GROUP BY month) m WHERE median > 60
--> planned

SELECT region, month FROM orders GROUP BY CUBE (region, month) HAVING sum(total) > 30000
--> planned

SELECT category FROM orders GROUP BY category HAVING min(price) >= 5 AND max(price) - min(price) > 200
--> KH204

SELECT region FROM orders GROUP BY region HAVING avg(total) FILTER (WHERE gift) > 1.2 * avg(total) FILTER (WHERE NOT gift)
--> planned
