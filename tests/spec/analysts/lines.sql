-- # What analysts and their tools write about order lines of a shop, each line protected by itself, by the families of docs/asking.md.
-- # key
SELECT FLOOR(unit_price / 25) * 25 AS price_bucket, COUNT(*) AS order_lines FROM order_lines GROUP BY price_bucket HAVING COUNT(*) > 5000 ORDER BY price_bucket
--> planned

SELECT DATE_PART('week', ordered_on) AS wk, SUM(qty * unit_price) AS revenue FROM order_lines WHERE ordered_on BETWEEN '2025-10-01' AND '2025-12-31' GROUP BY DATE_PART('week', ordered_on) HAVING SUM(qty * unit_price) > 300000 ORDER BY wk
--> planned

SELECT SPLIT_PART(sku, '-', 1) AS family, channel, SUM(qty) AS units FROM order_lines GROUP BY 1, 2 HAVING SUM(qty) > 8000
--> planned

SELECT CASE WHEN promo_code IS NULL THEN 'no promo' ELSE 'promo' END AS promo, category, COUNT(*) FROM order_lines GROUP BY CASE WHEN promo_code IS NULL THEN 'no promo' ELSE 'promo' END, category HAVING COUNT(*) > 2000
--> planned

SELECT WIDTH_BUCKET(weight_kg, 0, 10, 5) AS weight_class, COUNT(*) AS n FROM order_lines WHERE weight_kg IS NOT NULL GROUP BY 1 HAVING COUNT(*) > 1000
--> planned

SELECT shipped_on - ordered_on AS days_to_ship, COUNT(*) AS shipments FROM order_lines WHERE shipped_on IS NOT NULL GROUP BY shipped_on - ordered_on HAVING COUNT(*) > 3000 ORDER BY days_to_ship
--> planned

SELECT TO_CHAR(ordered_on, 'YYYY-MM') AS order_month, CASE WHEN discount > 0 THEN 'Discounted' ELSE 'Full price' END AS price_type, SUM(qty) FROM order_lines GROUP BY 1, 2 HAVING SUM(qty) >= 5000 ORDER BY 1, 2
--> planned

-- # row
SELECT category, COUNT(*) AS heavy FROM order_lines WHERE qty * weight_kg > 20 GROUP BY category HAVING COUNT(*) > 300
--> planned

SELECT warehouse, COUNT(*) AS slow_lines FROM order_lines WHERE shipped_on - ordered_on > 5 GROUP BY warehouse HAVING COUNT(*) > 1000
--> planned

SELECT country, SUM(qty * unit_price * (1 - COALESCE(discount, 0))) AS net_revenue FROM order_lines WHERE NOT returned GROUP BY country HAVING SUM(qty * unit_price * (1 - COALESCE(discount, 0))) > 1500000 ORDER BY net_revenue DESC
--> planned

SELECT category FROM order_lines o JOIN products p USING (sku, category) WHERE o.unit_price < p.list_price * 0.9 GROUP BY category HAVING COUNT(*) > 3000
--> planned

SELECT channel, COUNT(*) FILTER (WHERE gift IS TRUE AND promo_code IS DISTINCT FROM 'CLEAR') AS gifts FROM order_lines GROUP BY channel HAVING COUNT(*) FILTER (WHERE gift IS TRUE AND promo_code IS DISTINCT FROM 'CLEAR') > 1000
--> planned

SELECT warehouse FROM order_lines WHERE ROUND(unit_price * (1 + tax_rate)::numeric, 2) >= 100.00 AND LOWER(TRIM(channel)) IN ('web', 'app') GROUP BY warehouse HAVING COUNT(*) > 500
--> KH205

SELECT country, COUNT(*) FROM order_lines WHERE EXTRACT(MONTH FROM shipped_on) <> EXTRACT(MONTH FROM ordered_on) GROUP BY country HAVING COUNT(*) > 800
--> planned

-- # guard
SELECT category, AVG(rating) AS avg_rating, COUNT(rating) AS ratings FROM order_lines GROUP BY category HAVING AVG(rating) >= 4 AND COUNT(rating) >= 100
--> planned

SELECT category, SUM(CASE WHEN returned THEN 1 ELSE 0 END)::float / COUNT(*) AS return_rate FROM order_lines GROUP BY category HAVING SUM(CASE WHEN returned THEN 1 ELSE 0 END)::float / COUNT(*) > 0.05 ORDER BY return_rate DESC
--> planned

SELECT country, channel, SUM(qty) FROM order_lines GROUP BY CUBE (country, channel) HAVING SUM(qty) > 10000
--> planned

SELECT warehouse, MAX(unit_price) AS dearest, MIN(unit_price) AS cheapest FROM order_lines GROUP BY warehouse HAVING MAX(unit_price) >= 120 AND NOT MIN(unit_price) > 5
--> planned

SELECT channel FROM order_lines GROUP BY channel HAVING AVG(unit_price) FILTER (WHERE promo_code = 'VIP') > AVG(unit_price) FILTER (WHERE promo_code IS NULL)
--> planned

SELECT category, STDDEV_SAMP(unit_price) AS sd FROM order_lines GROUP BY category HAVING STDDEV_SAMP(unit_price) > 25 AND AVG(qty) > 2
--> planned

SELECT sku_category, gifts_share FROM (SELECT category AS sku_category, AVG(CASE WHEN gift THEN 1.0 ELSE 0.0 END) AS gifts_share FROM order_lines GROUP BY category) x WHERE gifts_share BETWEEN 0.05 AND 0.2
--> planned

-- # rank
SELECT category, SUM(qty * unit_price) AS sales FROM order_lines GROUP BY category ORDER BY sales DESC LIMIT 3
--> planned

SELECT country, category FROM (SELECT country, category, DENSE_RANK() OVER (PARTITION BY country ORDER BY SUM(qty) DESC) AS dr FROM order_lines GROUP BY country, category) r WHERE dr <= 2 ORDER BY country, dr
--> planned

SELECT p.brand, SUM(o.qty) AS units FROM order_lines o JOIN products p ON p.sku = o.sku GROUP BY p.brand ORDER BY units DESC LIMIT 1 OFFSET 1
--> planned

WITH monthly AS (SELECT DATE_TRUNC('month', ordered_on) AS m, category, SUM(qty * unit_price) AS rev FROM order_lines GROUP BY 1, 2) SELECT m, category, rev FROM (SELECT m, category, rev, ROW_NUMBER() OVER (PARTITION BY m ORDER BY rev DESC) AS rn FROM monthly) s WHERE rn = 1 ORDER BY m
--> planned

SELECT warehouse, SUM(CASE WHEN returned THEN 1 ELSE 0 END) * 1.0 / COUNT(*) AS rr FROM order_lines GROUP BY warehouse ORDER BY rr DESC LIMIT 2
--> planned

SELECT sku FROM (SELECT sku, PERCENT_RANK() OVER (ORDER BY SUM(qty) DESC) AS pr FROM order_lines GROUP BY sku) z WHERE pr <= 0.1
--> planned

SELECT category FROM order_lines GROUP BY category HAVING COUNT(*) > 5000 ORDER BY AVG(rating) ASC NULLS LAST LIMIT 2
--> planned

-- # text
SELECT warehouses.city, COUNT(*) AS line_count FROM order_lines AS order_lines LEFT JOIN warehouses ON order_lines.warehouse = warehouses.code WHERE (order_lines.ordered_on >= DATE '2025-07-01') AND (order_lines.ordered_on < DATE '2026-01-01') GROUP BY 1 HAVING COUNT(*) > 5000 ORDER BY 2 DESC LIMIT 500
--> planned

SELECT w.code FROM warehouses w LEFT JOIN (SELECT warehouse, COUNT(*) AS cnt FROM order_lines WHERE returned GROUP BY warehouse HAVING COUNT(*) > 1200) b ON b.warehouse = w.code WHERE b.warehouse IS NULL
--> planned

SELECT category, COUNT(*) > 10000 AND LAG(COUNT(*) > 10000) OVER (ORDER BY category) AS streak FROM order_lines GROUP BY category
--> planned

SELECT "category" AS "category", sum("qty") AS "SUM(qty)", avg("rating") AS "AVG(rating)" FROM (SELECT * FROM order_lines WHERE country IN ('NL', 'BE')) AS "virtual_table" WHERE "ordered_on" >= TO_DATE('2025-01-01', 'YYYY-MM-DD') AND "ordered_on" < TO_DATE('2026-01-01', 'YYYY-MM-DD') GROUP BY "category" HAVING ((sum("qty") > 5000)) ORDER BY "SUM(qty)" DESC LIMIT 10000
--> planned

SELECT CAST(SUM(qty) AS bigint) AS units, category AS cat FROM order_lines GROUP BY cat HAVING CAST(SUM(qty) AS bigint) > 20000
--> planned

SELECT q.channel, q.total_units, q.total_units > 60000 AS above_target FROM (SELECT channel, SUM(qty) AS total_units FROM order_lines GROUP BY channel) q ORDER BY above_target DESC, q.channel
--> planned

-- # once more, of all families, on what had been mended then
SELECT CASE WHEN shipped_on IS NULL THEN 'open' WHEN shipped_on - ordered_on <= 2 THEN 'fast' WHEN shipped_on - ordered_on <= 5 THEN 'normal' ELSE 'slow' END AS delivery, country, COUNT(*) FROM order_lines GROUP BY 1, 2 HAVING COUNT(*) > 1500
--> planned

SELECT CEIL(weight_kg) AS kg, COUNT(*) AS n FROM order_lines GROUP BY CEIL(weight_kg) HAVING COUNT(*) > 5000 ORDER BY kg
--> planned

SELECT EXTRACT(YEAR FROM ordered_on) || '-Q' || EXTRACT(QUARTER FROM ordered_on) AS quarter, channel, SUM(unit_price * qty) AS gmv FROM order_lines GROUP BY 1, 2 HAVING SUM(unit_price * qty) > 1000000
--> planned

SELECT channel, COUNT(*) FROM order_lines WHERE (unit_price * qty)::numeric(12,2) > 250.00 AND promo_code IN ('VIP', 'SPRING') GROUP BY channel HAVING COUNT(*) > 200
--> planned

SELECT o.category, COUNT(*) FROM order_lines o INNER JOIN products p ON p.sku = o.sku WHERE 1 - o.unit_price / p.list_price > 0.1 GROUP BY o.category HAVING COUNT(*) > 2000
--> planned

SELECT warehouse FROM order_lines WHERE ROUND(weight_kg::numeric, 1) >= 2.5 GROUP BY warehouse HAVING COUNT(*) > 2000
--> planned

SELECT channel, COUNT(DISTINCT order_id) AS orders, COUNT(*)::numeric / COUNT(DISTINCT order_id) AS lines_per_order FROM order_lines GROUP BY channel HAVING COUNT(*)::numeric / COUNT(DISTINCT order_id) > 1.5
--> KH204

SELECT country, 100 * AVG(returned::int) AS pct FROM order_lines GROUP BY country HAVING 100 * AVG(returned::int) >= 6.5
--> planned

SELECT category, PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY unit_price) AS p90 FROM order_lines GROUP BY category HAVING PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY unit_price) >= 90
--> planned

SELECT country FROM order_lines GROUP BY country HAVING EVERY(qty > 0) AND COUNT(*) FILTER (WHERE gift) > 100
--> planned

SELECT * FROM (SELECT category, sku, SUM(qty) AS units, ROW_NUMBER() OVER (PARTITION BY category ORDER BY SUM(qty) DESC) AS rn FROM order_lines GROUP BY category, sku) ranked WHERE rn <= 2 ORDER BY category, rn
--> planned

SELECT channel, AVG(rating)::numeric(3,2) AS stars FROM order_lines WHERE rating IS NOT NULL GROUP BY channel HAVING COUNT(*) >= 500 ORDER BY stars DESC LIMIT 1
--> planned

SELECT t.country, t.revenue, ROUND(t.revenue / t.orders, 2) AS aov FROM (SELECT country, SUM(unit_price * qty) AS revenue, COUNT(DISTINCT order_id) AS orders FROM order_lines WHERE ordered_on >= '2025-06-01' GROUP BY country) t WHERE t.revenue > 1000000 AND t.orders > 1000 ORDER BY t.revenue DESC
--> planned

SELECT category AS category, COUNT(*) AS count FROM public.order_lines WHERE ordered_on >= '2025-01-01' AND ordered_on < '2025-07-01' GROUP BY category HAVING COUNT(*) > 3000 ORDER BY count DESC LIMIT 1000
--> planned
