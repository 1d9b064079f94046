-- A month of questions about a retailer's baskets, in the order in which they come up. A comment names the form.

-- numbers
SELECT store, count(DISTINCT household) AS households FROM baskets GROUP BY store HAVING count(DISTINCT household) > {50}
ORDER BY households DESC

-- numbers
SELECT month, sum(amount) AS revenue FROM baskets GROUP BY month HAVING sum(amount) > {450000} ORDER BY month

-- numbers
SELECT kind, count(DISTINCT household) AS households, sum(amount) AS revenue FROM baskets GROUP BY kind
HAVING count(DISTINCT household) > {2000} ORDER BY revenue DESC

-- again
SELECT store, count(DISTINCT household) AS n FROM baskets GROUP BY 1 HAVING count(DISTINCT household) > {50}

-- again
SELECT store, count(DISTINCT household) AS households FROM baskets GROUP BY store HAVING count(DISTINCT household) > {60}
ORDER BY households DESC

-- numbers
SELECT week, count(DISTINCT household) AS households FROM baskets GROUP BY week HAVING count(DISTINCT household) > {1500}
ORDER BY week

-- rows
SELECT month, count(DISTINCT household) AS households FROM baskets WHERE coupon GROUP BY month
HAVING count(DISTINCT household) > {1500}

-- rates
SELECT kind, count(*) FILTER (WHERE coupon) * 100.0 / count(*) AS with_coupon FROM baskets GROUP BY kind
HAVING count(*) FILTER (WHERE coupon) * 100.0 / count(*) > {15}

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

-- computed
SELECT date_trunc('quarter', month) AS quarter, sum(amount) AS revenue FROM baskets GROUP BY 1 HAVING sum(amount) > {1400000}

-- computed
SELECT CASE WHEN kind IN ('kind00', 'kind01', 'kind02') THEN 'fresh' ELSE 'other' END AS goods, month,
count(DISTINCT household) AS households FROM baskets GROUP BY 1, 2 HAVING count(DISTINCT household) > {1000}

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

-- windows
SELECT week, lag(count(DISTINCT household) > 1600) OVER (ORDER BY week) AS busy_before FROM baskets GROUP BY week

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

-- numbers
SELECT store, count(*) AS baskets, sum(amount) AS revenue FROM baskets GROUP BY store
HAVING count(*) > {5000} AND sum(amount) > {80000}

-- numbers
SELECT store, month, count(DISTINCT household) AS households FROM baskets GROUP BY store, month
HAVING count(DISTINCT household) > {60} ORDER BY store, month

-- scorecard
SELECT month, count(DISTINCT household) > {2300} AS busy, sum(amount) > {500000} AS rich FROM baskets GROUP BY month ORDER BY 1

-- scorecard
SELECT store, CASE WHEN count(DISTINCT household) > 100 THEN 'large' WHEN count(DISTINCT household) > 50 THEN 'usual'
ELSE 'small' END AS class FROM baskets GROUP BY store

-- guards
SELECT month, avg(amount) AS mean_basket FROM baskets WHERE coupon GROUP BY month HAVING avg(amount) < {-18}

-- numbers
SELECT store FROM (SELECT store, household, sum(amount) AS total FROM baskets GROUP BY store, household) v
WHERE total > 1000 GROUP BY store HAVING count(*) > {30}

-- again
SELECT week, count(DISTINCT household) AS households FROM baskets GROUP BY week HAVING count(DISTINCT household) > {1000}
ORDER BY week

-- again
SELECT month, sum(amount) AS revenue FROM baskets GROUP BY month HAVING sum(amount) > {500000} ORDER BY month

-- again
SELECT store, sum(amount) AS revenue FROM baskets GROUP BY store ORDER BY revenue DESC LIMIT 10

-- again
SELECT kind, count(DISTINCT household) AS households, sum(amount) AS revenue FROM baskets GROUP BY kind
HAVING count(DISTINCT household) > {2200} ORDER BY revenue DESC

-- again
SELECT store, CASE WHEN count(DISTINCT household) > 100 THEN 'large' WHEN count(DISTINCT household) > 50 THEN 'usual'
ELSE 'small' END AS class FROM baskets GROUP BY store
