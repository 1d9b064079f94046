-- A month of questions about a hotel group's bookings, in the order in which they come up. A comment names the form.

-- numbers
SELECT country, count(*) AS bookings FROM bookings GROUP BY country HAVING count(*) > {1000} ORDER BY bookings DESC

-- numbers
SELECT month, count(*) AS n, round(avg(price)::numeric, 2) AS mean_price FROM bookings GROUP BY month HAVING count(*) > {8000}
ORDER BY month

-- again
SELECT country, count(*) AS n FROM bookings GROUP BY 1 HAVING count(*) > {1000}

-- again
SELECT country, count(*) AS bookings FROM bookings GROUP BY country HAVING count(*) > {1500} ORDER BY bookings DESC

-- data
SELECT channel, sum(price) AS revenue FROM bookings GROUP BY channel
HAVING sum(price) > 0.25 * (SELECT sum(price) FROM bookings){-} ORDER BY revenue DESC

-- rows
SELECT country, count(*) AS cancelled FROM bookings WHERE cancelled GROUP BY country HAVING count(*) > {400}

-- rates
SELECT country FROM bookings GROUP BY country
HAVING count(*) FILTER (WHERE cancelled) * 100.0 / count(*) > {35} AND count(*) >= 1000

-- rates
SELECT channel, avg(CASE WHEN cancelled THEN 1.0 ELSE 0 END) AS rate FROM bookings GROUP BY channel
HAVING avg(CASE WHEN cancelled THEN 1.0 ELSE 0 END) > {0.25}

-- computed
SELECT CASE WHEN nights >= 8 THEN 'long' WHEN nights >= 3 THEN 'usual' ELSE 'short' END AS stay, hotel, count(*) AS n
FROM bookings GROUP BY 1, 2 HAVING count(*) > {5000} ORDER BY n DESC

-- computed
SELECT floor(price / 50) * 50 AS price_band, count(*) FROM bookings GROUP BY 1 HAVING count(*) > {10000} ORDER BY 1

-- computed
SELECT extract(isodow FROM day) AS weekday, count(*) AS n FROM bookings GROUP BY weekday HAVING count(*) > {17000}

-- trend
SELECT week FROM (SELECT date_trunc('week', day)::date AS week, sum(price) AS revenue,
lag(sum(price)) OVER (ORDER BY date_trunc('week', day)::date) AS before FROM bookings
WHERE day >= '2024-06-01' AND day < '2024-09-01' GROUP BY 1) q WHERE revenue < 0.9 * before{+} ORDER BY week

-- guards
SELECT country, avg(price) AS mean_price FROM bookings GROUP BY country HAVING avg(price) >= {100} ORDER BY 2 DESC

-- guards
SELECT channel, round(avg(nights), 1) AS nights FROM bookings GROUP BY channel HAVING avg(nights) > {3.5}

-- guards
SELECT hotel, month, percentile_cont(0.5) WITHIN GROUP (ORDER BY price) AS median FROM bookings GROUP BY 1, 2
HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY price) > {80}

-- ranks
SELECT country, count(*) AS n FROM bookings GROUP BY country ORDER BY n DESC LIMIT 10

-- ranks
SELECT month, country FROM (SELECT month, country, row_number() OVER (PARTITION BY month ORDER BY sum(price) DESC) AS place
FROM bookings GROUP BY month, country) q WHERE place <= 3

-- rollup
SELECT hotel, channel, count(*) AS n FROM bookings GROUP BY ROLLUP (hotel, channel) HAVING count(*) > {5000}

-- trend
SELECT month, n, before FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM bookings
GROUP BY month) q WHERE n > 1.1 * before{-} ORDER BY month

-- rows
SELECT country, count(*) AS n FROM bookings WHERE price / nights > 60 GROUP BY country HAVING count(*) > {500}

-- rows
SELECT channel, count(*) AS n FROM bookings WHERE price > 100 * guests GROUP BY channel HAVING count(*) > {3000}

-- around
SELECT region, count(*) AS large_markets FROM (SELECT country FROM bookings GROUP BY country HAVING count(*) > {1000}) q
JOIN markets USING (country) GROUP BY region

-- around
SELECT m.country FROM markets m WHERE NOT EXISTS (SELECT 1 FROM bookings b WHERE b.country = m.country
GROUP BY b.country HAVING count(*) > {-800})

-- numbers
SELECT m.region, count(*) AS n, sum(b.price) AS revenue FROM bookings b JOIN markets m ON m.country = b.country
GROUP BY m.region HAVING count(*) > {10000} ORDER BY revenue DESC

-- scorecard
SELECT country, count(*) > {1000} AS large, avg(price) > {103} AS dear FROM bookings GROUP BY country

-- scorecard
SELECT month, CASE WHEN sum(price) > 1000000 THEN 'high' WHEN sum(price) > 700000 THEN 'usual' ELSE 'low' END AS revenue
FROM bookings GROUP BY month ORDER BY month

-- trend
WITH by_month AS (SELECT channel, month, count(*) AS n, lag(count(*)) OVER (PARTITION BY channel ORDER BY month) AS before
FROM bookings GROUP BY channel, month) SELECT channel, month, n FROM by_month WHERE n < before - {200} ORDER BY n

-- trend
WITH m AS (SELECT month, count(*) AS n FROM bookings GROUP BY month)
SELECT a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.n > 1.1 * b.n{-}

-- data
SELECT month, count(*) AS n FROM bookings GROUP BY month
HAVING count(*) > (SELECT avg(n) FROM (SELECT month, count(*) AS n FROM bookings GROUP BY month) m){-} ORDER BY month

-- data
SELECT hotel, channel FROM (SELECT hotel, channel, count(*) AS n, sum(count(*)) OVER (PARTITION BY hotel) AS total
FROM bookings GROUP BY hotel, channel) q WHERE n > 0.2 * total{-}

-- computed
SELECT CASE WHEN country IN ('C01', 'C02', 'C03') THEN country ELSE 'others' END AS market, sum(nights) AS nights
FROM bookings GROUP BY 1 HAVING sum(nights) > {30000} ORDER BY nights DESC

-- guards
SELECT country, stddev(price) AS spread FROM bookings GROUP BY country HAVING stddev(price) > {60}

-- data
SELECT country, avg(price) AS mean_price FROM bookings GROUP BY country
HAVING avg(price) > (SELECT avg(price) FROM bookings){-} ORDER BY 2 DESC

-- rates
SELECT hotel, channel, sum(price) / sum(nights) AS per_night FROM bookings GROUP BY 1, 2
HAVING sum(price) / sum(nights) > {25}

-- ranks
SELECT country, rank() OVER (ORDER BY sum(nights) DESC) <= 5 AS top_five FROM bookings GROUP BY country

-- trend
SELECT month, avg(sum(price)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) > {800000} AS strong
FROM bookings GROUP BY month ORDER BY month

-- numbers
SELECT country, hotel, count(*) AS n, sum(price) AS revenue FROM bookings WHERE NOT cancelled GROUP BY country, hotel
HAVING count(*) > {500} AND sum(price) > {60000} ORDER BY country

-- data
SELECT channel, revenue FROM (SELECT channel, sum(price) AS revenue, sum(sum(price)) OVER () AS total FROM bookings
GROUP BY channel) q WHERE revenue > 0.25 * total{-}

-- again
SELECT country, avg(price) AS mean_price FROM bookings GROUP BY country HAVING avg(price) >= {105} ORDER BY 2 DESC

-- again
SELECT country, count(*) AS n FROM bookings GROUP BY country ORDER BY n DESC LIMIT 10
