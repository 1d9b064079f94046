-- A month of questions about a retailer's baskets, in the order in which they come up. A comment names the form.

-- numbers
SELECT store, count(DISTINCT household) AS households FROM baskets GROUP BY store HAVING count(DISTINCT household) > {50}
ORDER BY households DESC

-- trend
SELECT month, revenue FROM (SELECT month, sum(amount) AS revenue, lag(sum(amount)) OVER (ORDER BY month) AS before
FROM baskets GROUP BY month) q WHERE revenue > 1.05 * before{-} ORDER BY month

-- numbers
SELECT kind, count(DISTINCT household) AS households, sum(amount) AS revenue FROM baskets GROUP BY kind
HAVING count(DISTINCT household) > {2000} ORDER BY revenue DESC

-- again
SELECT store, count(DISTINCT household) AS n FROM baskets GROUP BY 1 HAVING count(DISTINCT household) > {50}

-- again
SELECT store, count(DISTINCT household) AS households FROM baskets GROUP BY store HAVING count(DISTINCT household) > {60}
ORDER BY households DESC

-- data
SELECT kind, count(*) AS with_coupon FROM baskets WHERE coupon GROUP BY kind
HAVING count(*) > 0.05 * (SELECT count(*) FROM baskets WHERE coupon){-}

-- rows
SELECT month, count(DISTINCT household) AS households FROM baskets WHERE coupon GROUP BY month
HAVING count(DISTINCT household) > {1500}

-- data
SELECT kind, month FROM (SELECT kind, month, count(*) AS n, sum(count(*)) OVER (PARTITION BY month) AS total
FROM baskets GROUP BY kind, month) q WHERE n > 0.1 * total{-}

-- computed
SELECT coupon, count(DISTINCT household) AS households FROM baskets GROUP BY coupon HAVING count(DISTINCT household) > {2000}

-- computed
SELECT CASE WHEN amount >= 30 THEN 'large' WHEN amount >= 10 THEN 'usual' ELSE 'small' END AS size,
count(DISTINCT household) AS households FROM baskets GROUP BY 1 HAVING count(DISTINCT household) > {1500}

-- computed
SELECT floor(amount / 10) * 10 AS band, count(*) AS baskets FROM baskets GROUP BY 1 HAVING count(*) > {50000} ORDER BY 1

-- computed
SELECT extract(isodow FROM day) AS weekday, count(DISTINCT household) AS households FROM baskets GROUP BY weekday
HAVING count(DISTINCT household) > {2000}

-- computed
SELECT store / 10 AS district, count(DISTINCT household) AS households FROM baskets GROUP BY store / 10
HAVING count(DISTINCT household) > {300} ORDER BY 1

-- data
SELECT month, sum(amount) AS revenue FROM baskets GROUP BY month
HAVING sum(amount) > (SELECT avg(revenue) FROM (SELECT month, sum(amount) AS revenue FROM baskets GROUP BY month) m){-}
ORDER BY month

-- trend
WITH m AS (SELECT month, count(*) AS baskets FROM baskets GROUP BY month)
SELECT a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.baskets < b.baskets - {3000}

-- guards
SELECT store, avg(amount) AS mean_basket FROM baskets GROUP BY store HAVING avg(amount) >= {17} ORDER BY 2 DESC

-- guards
SELECT kind, round(avg(amount)::numeric, 2) AS mean_basket FROM baskets GROUP BY kind HAVING avg(amount) > {16}

-- rates
SELECT store, sum(amount) / count(DISTINCT household) AS per_household FROM baskets GROUP BY store
HAVING sum(amount) / count(DISTINCT household) > {1200}

-- ranks
SELECT store, sum(amount) AS revenue FROM baskets GROUP BY store ORDER BY revenue DESC LIMIT 10

-- ranks
SELECT kind, row_number() OVER (ORDER BY count(*) DESC) AS place FROM baskets GROUP BY kind ORDER BY place LIMIT 3

-- ranks
SELECT DISTINCT ON (month) month, kind FROM baskets GROUP BY month, kind ORDER BY month, sum(amount) DESC

-- rollup
SELECT kind, coupon, count(DISTINCT household) AS households FROM baskets GROUP BY ROLLUP (kind, coupon)
HAVING count(DISTINCT household) > {1500}

-- trend
SELECT week, avg(sum(amount)) OVER (ORDER BY week ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) > {110000} AS strong
FROM baskets GROUP BY week ORDER BY week

-- around
SELECT s.town, count(DISTINCT b.household) AS households FROM baskets b JOIN stores s ON s.store = b.store
GROUP BY s.town HAVING count(DISTINCT b.household) > {300} ORDER BY households DESC

-- around
SELECT s.store, s.town FROM stores s WHERE EXISTS (SELECT 1 FROM baskets b WHERE b.store = s.store GROUP BY b.store
HAVING count(DISTINCT b.household) > {80})

-- rows
SELECT store, count(DISTINCT household) AS households FROM baskets WHERE kind = 'kind00' GROUP BY store
HAVING count(DISTINCT household) > {60}

-- rows
SELECT month, count(DISTINCT household) AS households FROM baskets WHERE extract(isodow FROM day) >= 6 AND amount > 20
GROUP BY month HAVING count(DISTINCT household) > {1500}

-- numbers
SELECT month, count(DISTINCT household) AS households FROM baskets GROUP BY month HAVING count(DISTINCT household) < {-2400}

-- numbers
SELECT q.kind, q.n FROM (SELECT kind, count(*) AS n FROM baskets GROUP BY kind) q WHERE q.n > {20000} ORDER BY q.n DESC

-- data
SELECT store, sum(amount) AS revenue FROM baskets GROUP BY store HAVING sum(amount) >
2 * (SELECT avg(revenue) FROM (SELECT store, sum(amount) AS revenue FROM baskets GROUP BY store) s){-}

-- numbers
SELECT store, month, count(DISTINCT household) AS households FROM baskets GROUP BY store, month
HAVING count(DISTINCT household) > {60} ORDER BY store, month

-- scorecard
SELECT month, count(DISTINCT household) > {2300} AS busy, sum(amount) > {500000} AS rich FROM baskets GROUP BY month ORDER BY 1

-- scorecard
SELECT store, CASE WHEN count(DISTINCT household) > 100 THEN 'large' WHEN count(DISTINCT household) > 50 THEN 'usual'
ELSE 'small' END AS class FROM baskets GROUP BY store

-- data
SELECT kind, avg(amount) AS mean_basket FROM baskets GROUP BY kind
HAVING avg(amount) > (SELECT avg(amount) FROM baskets){-} ORDER BY 2 DESC

-- numbers
SELECT store FROM (SELECT store, household, sum(amount) AS total FROM baskets GROUP BY store, household) v
WHERE total > 1000 GROUP BY store HAVING count(*) > {30}

-- trend
WITH m AS (SELECT month, sum(amount) AS revenue FROM baskets GROUP BY month)
SELECT a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.revenue > 1.05 * b.revenue{-}

-- trend
SELECT month, sum(sum(amount)) OVER (PARTITION BY extract(year FROM month) ORDER BY month) > {3000000} AS reached
FROM baskets GROUP BY month ORDER BY month

-- again
SELECT store, sum(amount) AS revenue FROM baskets GROUP BY store ORDER BY revenue DESC LIMIT 10

-- again
SELECT kind, count(DISTINCT household) AS households, sum(amount) AS revenue FROM baskets GROUP BY kind
HAVING count(DISTINCT household) > {2200} ORDER BY revenue DESC

-- again
SELECT store, CASE WHEN count(DISTINCT household) > 100 THEN 'large' WHEN count(DISTINCT household) > 50 THEN 'usual'
ELSE 'small' END AS class FROM baskets GROUP BY store
