-- A month of questions about a shop's sale lines, in the order in which they come up. A comment names the form.

-- numbers
SELECT country, count(DISTINCT customer_id) AS customers FROM sales GROUP BY country
HAVING count(DISTINCT customer_id) > {60} ORDER BY customers DESC

-- trend
SELECT month, revenue, before FROM (SELECT month, sum(amount) AS revenue, lag(sum(amount)) OVER (ORDER BY month) AS before
FROM sales GROUP BY month) q WHERE revenue > 1.2 * before{-} ORDER BY month

-- numbers
SELECT month, count(DISTINCT customer_id) AS customers, count(*) AS lines FROM sales GROUP BY month
HAVING count(DISTINCT customer_id) > {900} ORDER BY customers DESC

-- again
SELECT country, count(DISTINCT customer_id) AS customers FROM sales GROUP BY country
HAVING count(DISTINCT customer_id) > {60} ORDER BY customers DESC

-- trend
WITH m AS (SELECT month, sum(amount) AS revenue FROM sales GROUP BY month)
SELECT a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.revenue > 1.2 * b.revenue{-}

-- rows
SELECT month, count(DISTINCT customer_id) AS large FROM sales WHERE quantity >= 20 GROUP BY month
HAVING count(DISTINCT customer_id) > {500}

-- computed
SELECT CASE WHEN quantity >= 24 THEN 'bulk' ELSE 'retail' END AS kind, count(DISTINCT customer_id) AS customers
FROM sales GROUP BY 1 HAVING count(DISTINCT customer_id) > {2000}

-- data
SELECT month, sum(amount) AS revenue FROM sales GROUP BY month
HAVING sum(amount) > (SELECT avg(revenue) FROM (SELECT month, sum(amount) AS revenue FROM sales GROUP BY month) m){-}
ORDER BY month

-- computed
SELECT CASE WHEN country = 'United Kingdom' THEN 'home' ELSE 'abroad' END AS market, sum(amount) AS revenue FROM sales
GROUP BY 1 HAVING sum(amount) > {500000}

-- data
SELECT country, sum(amount) AS revenue FROM sales GROUP BY country
HAVING sum(amount) > 0.02 * (SELECT sum(amount) FROM sales){-} ORDER BY revenue DESC

-- computed
SELECT extract(isodow FROM invoice_date) AS weekday, count(DISTINCT customer_id) AS customers FROM sales GROUP BY weekday
HAVING count(DISTINCT customer_id) > {1200} ORDER BY weekday

-- computed
SELECT floor(amount / 20) * 20 AS line_value, count(*) AS lines FROM sales GROUP BY 1 HAVING count(*) > {20000}

-- guards
SELECT country, avg(amount) AS mean_line FROM sales GROUP BY country HAVING avg(amount) >= {25} ORDER BY 2 DESC

-- guards
SELECT hour, round(avg(amount)::numeric, 2) AS mean_line FROM sales GROUP BY hour HAVING avg(amount) > {18}

-- rates
SELECT country, sum(amount) / count(DISTINCT customer_id) AS per_customer FROM sales GROUP BY country
HAVING sum(amount) / count(DISTINCT customer_id) > {800}

-- rates
SELECT month, 100.0 * count(*) FILTER (WHERE quantity < 0) / count(*) AS returns FROM sales GROUP BY month
HAVING 100.0 * count(*) FILTER (WHERE quantity < 0) / count(*) > {2}

-- ranks
SELECT country, sum(amount) AS revenue FROM sales GROUP BY country ORDER BY revenue DESC LIMIT 5

-- trend
SELECT month, sum(amount) > lag(sum(amount)) OVER (ORDER BY month){-} AND lag(sum(amount)) OVER (ORDER BY month)
> lag(sum(amount), 2) OVER (ORDER BY month){-} AS twice FROM sales GROUP BY month

-- ranks
SELECT country, ntile(4) OVER (ORDER BY count(DISTINCT customer_id)) AS quarter FROM sales GROUP BY country
HAVING count(DISTINCT customer_id) > 10

-- rollup
SELECT country, month, count(DISTINCT customer_id) AS customers FROM sales
WHERE country IN ('United Kingdom', 'Germany', 'France', 'Spain') GROUP BY ROLLUP (country, month)
HAVING count(DISTINCT customer_id) > {40}

-- trend
SELECT month, avg(sum(amount)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) > {400000} AS strong
FROM sales GROUP BY month ORDER BY month

-- around
SELECT c.region, count(DISTINCT s.customer_id) AS customers FROM sales s JOIN countries c ON c.name = s.country
GROUP BY c.region HAVING count(DISTINCT s.customer_id) > {100} ORDER BY customers DESC

-- around
SELECT name FROM countries c WHERE region = 'Europe' AND NOT EXISTS (SELECT 1 FROM sales s WHERE s.country = c.name
GROUP BY s.country HAVING count(DISTINCT s.customer_id) > {-20})

-- rows
SELECT country, count(*) AS lines FROM sales WHERE amount / nullif(quantity, 0) > 5 GROUP BY country HAVING count(*) > {500}

-- rows
SELECT hour, count(DISTINCT customer_id) AS customers FROM sales WHERE amount > 10 * quantity GROUP BY hour
HAVING count(DISTINCT customer_id) > {100}

-- data
SELECT hour, count(*) AS lines FROM sales GROUP BY hour
HAVING count(*) > 0.1 * (SELECT count(*) FROM sales){-} ORDER BY hour

-- data
SELECT country, revenue FROM (SELECT country, sum(amount) AS revenue, sum(sum(amount)) OVER () AS total FROM sales
GROUP BY country) q WHERE revenue > 0.02 * total{-} ORDER BY revenue DESC

-- numbers
SELECT q.country, q.revenue FROM (SELECT country, sum(amount) AS revenue FROM sales GROUP BY country) q
WHERE q.revenue > {100000} ORDER BY q.revenue DESC

-- numbers
SELECT month, count(*) AS lines, sum(amount) AS revenue FROM sales WHERE country <> 'United Kingdom' GROUP BY month
HAVING sum(amount) > {50000}

-- scorecard
SELECT month, count(DISTINCT customer_id) > {1000} AS busy, sum(amount) > {400000} AS rich FROM sales GROUP BY month ORDER BY 1

-- scorecard
SELECT country, CASE WHEN sum(amount) > 200000 THEN 'high' WHEN sum(amount) > 50000 THEN 'usual' ELSE 'low' END AS class
FROM sales GROUP BY country

-- numbers
SELECT country, month, count(DISTINCT customer_id) AS customers FROM sales GROUP BY country, month
HAVING count(DISTINCT customer_id) > {20} ORDER BY country, month

-- numbers
SELECT country FROM (SELECT country, customer_id, count(*) AS n FROM sales GROUP BY country, customer_id) v WHERE n > 100
GROUP BY country HAVING count(*) > {100}

-- data
SELECT country, avg(amount) AS mean_line FROM sales GROUP BY country
HAVING avg(amount) > (SELECT avg(amount) FROM sales){-} ORDER BY 2 DESC

-- rates
SELECT month FROM sales GROUP BY month
HAVING count(DISTINCT customer_id) FILTER (WHERE country <> 'United Kingdom') > {0.08} * count(DISTINCT customer_id)
AND count(DISTINCT customer_id) >= 500

-- again
SELECT country, sum(amount) AS revenue FROM sales GROUP BY country ORDER BY revenue DESC LIMIT 5

-- again
SELECT month, count(DISTINCT customer_id) AS customers, count(*) AS lines FROM sales GROUP BY month
HAVING count(DISTINCT customer_id) > {1000} ORDER BY customers DESC

-- again
SELECT country, count(DISTINCT customer_id) AS customers FROM sales GROUP BY country
HAVING count(DISTINCT customer_id) > {30} ORDER BY customers DESC

-- trend
SELECT month, sum(sum(amount)) OVER (ORDER BY month) > {2000000} AS reached FROM sales GROUP BY month ORDER BY month

-- again
SELECT month, count(DISTINCT customer_id) > {1000} AS busy, sum(amount) > {400000} AS rich FROM sales GROUP BY month ORDER BY 1
