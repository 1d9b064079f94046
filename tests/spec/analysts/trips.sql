-- # What analysts write about a city's taxi trips, each protected, by the families of docs/asking.md.
-- # numbers
SELECT payment, count(*) AS trips, avg(tip) AS avg_tip FROM trips GROUP BY payment HAVING count(*) > 1000 ORDER BY trips DESC
--> planned

SELECT zone, sum(fare) AS revenue FROM trips GROUP BY zone HAVING sum(fare) > 50000 ORDER BY revenue DESC
--> planned

SELECT day, count(*) AS n FROM trips GROUP BY day HAVING count(*) >= 800
--> planned

SELECT z.borough, count(*) AS n FROM trips t JOIN zones z ON z.zone_id = t.zone GROUP BY z.borough HAVING count(*) > 5000 ORDER BY n DESC
--> planned

SELECT vendor, payment, round(avg(fare)::numeric, 2) AS fare FROM trips GROUP BY vendor, payment HAVING avg(fare) > 14
--> planned

SELECT zone, min(fare) AS cheapest, max(fare) AS dearest, count(*) AS n FROM trips GROUP BY zone HAVING count(*) > 500
--> planned

SELECT zone, sum(tip) / sum(fare) AS tip_rate FROM trips GROUP BY zone HAVING sum(tip) / sum(fare) > 0.15
--> planned

-- # key
SELECT extract(hour FROM pickup) AS hour FROM trips GROUP BY 1 HAVING count(*) > 3000
--> planned

SELECT extract(dow FROM pickup) AS dow, extract(hour FROM pickup) AS hour FROM trips GROUP BY 1, 2 HAVING count(*) > 500
--> planned

SELECT date_trunc('hour', pickup) AS h FROM trips WHERE pickup >= '2024-02-14' AND pickup < '2024-02-15' GROUP BY 1 HAVING count(*) > 50
--> planned

SELECT date_trunc('month', pickup) AS m FROM trips WHERE pickup BETWEEN '2024-01-01' AND '2024-03-31 23:59:59' GROUP BY 1 HAVING sum(fare) > 300000
--> planned

SELECT floor(distance) AS miles FROM trips GROUP BY floor(distance) HAVING count(*) > 500
--> planned

SELECT round(distance) AS miles, payment FROM trips GROUP BY 1, 2 HAVING count(*) > 200
--> planned

SELECT floor(fare / 5) * 5 AS fare_from FROM trips GROUP BY 1 HAVING count(*) > 1000 ORDER BY 1
--> planned

SELECT ceil(tip) AS tip_up_to FROM trips WHERE payment = 'card' GROUP BY 1 HAVING count(*) > 300
--> planned

SELECT trunc(fare, -1) AS tens FROM trips GROUP BY trunc(fare, -1) HAVING count(*) > 500
--> planned

SELECT width_bucket(distance, 0, 20, 4) AS bucket, vendor FROM trips GROUP BY 1, 2 HAVING avg(tip) > 2
--> planned

SELECT CASE WHEN distance < 1 THEN 'short' WHEN distance < 5 THEN 'medium' ELSE 'long' END AS trip, count(*) FROM trips GROUP BY 1 HAVING count(*) > 2000
--> planned

SELECT CASE WHEN extract(hour FROM pickup) BETWEEN 6 AND 9 THEN 'morning' WHEN extract(hour FROM pickup) BETWEEN 16 AND 19 THEN 'evening' ELSE 'other' END AS rush FROM trips GROUP BY 1 HAVING avg(fare) > 15
--> planned

SELECT tip > 0 AS tipped, payment FROM trips GROUP BY tip > 0, payment HAVING count(*) > 1000
--> planned

SELECT tip = 0, vendor FROM trips GROUP BY tip = 0, vendor HAVING count(*) > 2000
--> planned

SELECT passengers >= 3 AS grouped, vendor FROM trips GROUP BY 1, 2 HAVING count(*) > 500
--> planned

SELECT passengers % 2 AS odd FROM trips GROUP BY passengers % 2 HAVING count(*) > 1000
--> planned

SELECT extract(isodow FROM day) >= 6 AS weekend, payment FROM trips GROUP BY 1, 2 HAVING count(*) > 2000
--> planned

SELECT to_char(day, 'YYYY-MM') AS month FROM trips GROUP BY to_char(day, 'YYYY-MM') HAVING sum(fare) > 200000
--> planned

SELECT date_trunc('week', day) AS week FROM trips GROUP BY 1 HAVING count(*) > 5000
--> planned

SELECT lower(payment) || '-' || vendor AS label FROM trips GROUP BY 1 HAVING count(*) > 500
--> planned

SELECT substring(payment FROM 1 FOR 2) AS p FROM trips GROUP BY 1 HAVING count(*) > 100
--> planned

SELECT rate_code IN (2, 3) AS airport FROM trips GROUP BY 1 HAVING count(*) > 300
--> planned

SELECT CASE WHEN rate_code = 1 THEN 'standard' WHEN rate_code IN (2, 3) THEN 'airport' ELSE 'other' END AS rate, day FROM trips WHERE day >= '2024-03-01' GROUP BY 1, 2 HAVING count(*) > 40
--> planned

SELECT coalesce(passengers, 1) AS p FROM trips GROUP BY 1 HAVING count(*) > 400
--> planned

SELECT distance > 10 OR fare > 60 AS far, vendor FROM trips GROUP BY 1, 2 HAVING count(*) > 300
--> planned

-- # row
SELECT zone FROM trips WHERE tip > 0.2 * fare GROUP BY zone HAVING count(*) > 300
--> planned

SELECT zone FROM trips WHERE fare / nullif(distance, 0) > 5 GROUP BY zone HAVING count(*) > 100
--> planned

SELECT day FROM trips WHERE dropoff - pickup > interval '1 hour' GROUP BY day HAVING count(*) > 30
--> planned

SELECT zone FROM trips WHERE extract(epoch FROM dropoff - pickup) < 300 GROUP BY zone HAVING count(*) > 100
--> planned

SELECT vendor FROM trips WHERE dropoff < pickup GROUP BY vendor HAVING count(*) > 10
--> planned

SELECT zone FROM trips WHERE fare + tip + tolls > 50 GROUP BY zone HAVING count(*) > 100
--> planned

SELECT zone FROM trips WHERE round(fare) = fare GROUP BY zone HAVING count(*) > 100
--> planned

SELECT zone FROM trips WHERE tip >= fare GROUP BY zone HAVING count(*) > 10
--> planned

SELECT zone FROM trips WHERE pickup::time >= '22:00' GROUP BY zone HAVING count(*) > 100
--> planned

SELECT zone FROM trips GROUP BY zone HAVING count(*) FILTER (WHERE tip > fare * 0.25) > 100
--> planned

SELECT zone FROM trips WHERE pickup::date <> dropoff::date GROUP BY zone HAVING count(*) > 40
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(fare + tip) > 20
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(extract(epoch FROM (dropoff - pickup)) / 60) > 18
--> planned

SELECT zone FROM trips WHERE greatest(tip, tolls) > 10 GROUP BY zone HAVING count(*) > 50
--> planned

-- # guard
SELECT zone FROM trips GROUP BY zone HAVING avg(fare) >= 18
--> planned

SELECT zone FROM trips GROUP BY zone HAVING percentile_cont(0.9) WITHIN GROUP (ORDER BY distance) > 8
--> planned

SELECT payment FROM trips GROUP BY payment HAVING round(avg(tip), 2) >= 1.5
--> planned

SELECT zone FROM trips GROUP BY zone HAVING stddev_samp(fare) > 12
--> planned

SELECT zone FROM trips GROUP BY zone HAVING count(*) FILTER (WHERE payment = 'cash') * 100 / count(*) > 40
--> planned

SELECT zone FROM trips GROUP BY zone HAVING sum(CASE WHEN tip = 0 THEN 1 ELSE 0 END)::float / count(*) > 0.5
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(tip) FILTER (WHERE vendor = 'A') > avg(tip) FILTER (WHERE vendor = 'B')
--> planned

SELECT zone FROM trips GROUP BY zone HAVING max(fare) > 150 AND count(*) > 100
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(fare) - avg(tip) > 12
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(fare) BETWEEN 10 AND 14
--> planned

SELECT zone FROM trips GROUP BY zone HAVING (avg(tip) > 2) IS TRUE
--> planned

-- # rank
SELECT zone FROM trips GROUP BY zone ORDER BY count(*) DESC LIMIT 10
--> planned

SELECT zone FROM trips GROUP BY zone ORDER BY sum(fare) DESC LIMIT 5 OFFSET 5
--> planned

SELECT zone, avg(tip) AS t FROM trips GROUP BY zone HAVING count(*) >= 500 ORDER BY t DESC LIMIT 5
--> planned

SELECT DISTINCT ON (day) day, zone FROM trips GROUP BY day, zone ORDER BY day, count(*) DESC
--> planned

WITH ranked AS (SELECT day, payment, row_number() OVER (PARTITION BY day ORDER BY count(*) DESC) AS rn FROM trips GROUP BY day, payment) SELECT day, payment FROM ranked WHERE rn = 1
--> planned

SELECT zone FROM (SELECT zone, percent_rank() OVER (ORDER BY sum(fare) DESC) AS pr FROM trips GROUP BY zone) q WHERE pr <= 0.1
--> planned

SELECT vendor, payment FROM trips GROUP BY GROUPING SETS ((vendor), (payment), (vendor, payment)) HAVING count(*) > 3000
--> planned

SELECT zone, rank() OVER (ORDER BY count(*) DESC) <= 10 AS top_ten FROM trips GROUP BY zone
--> planned

-- # text
SELECT day, count(*) > 900 AS busy, lead(count(*) > 900) OVER (ORDER BY day) AS busy_next FROM trips GROUP BY day
--> planned

SELECT z.name FROM zones z WHERE NOT EXISTS (SELECT 1 FROM trips t WHERE t.zone = z.zone_id GROUP BY t.zone HAVING count(*) > 100)
--> planned

SELECT string_agg(payment, ', ') FROM (SELECT payment FROM trips GROUP BY payment HAVING count(*) > 1000) p
--> planned

SELECT zone, day FROM trips GROUP BY zone, day HAVING sum(extract(epoch from dropoff - pickup)) > 36000
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(distance / (extract(epoch from dropoff - pickup)/3600)) > 12
--> planned

SELECT zone FROM trips GROUP BY zone HAVING sum(distance) / (sum(extract(epoch from dropoff - pickup)) / 3600) > 12
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(tip / nullif(fare, 0)) > 0.15
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(extract(epoch from dropoff) - extract(epoch from pickup)) > 1200
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(fare * rate_code) > 20
--> planned

SELECT zone FROM trips GROUP BY zone HAVING avg(rate_code) > 2
--> planned
-- # groups of groups
SELECT payment, sum(n) AS trips, sum(total) / sum(n) AS mean FROM (SELECT payment, vendor, count(*) AS n, sum(fare) AS total FROM trips WHERE distance > 1 GROUP BY 1, 2) v GROUP BY payment HAVING sum(n) > 5000 ORDER BY trips DESC
--> planned

WITH daily AS (SELECT vendor, pickup::date AS day, count(*) FILTER (WHERE tip > 5) AS generous FROM trips GROUP BY 1, 2) SELECT vendor, sum(generous) FROM daily GROUP BY vendor HAVING sum(generous) > 2000
--> planned

SELECT vendor FROM (SELECT vendor, pickup::date AS day, max(fare) AS most FROM trips GROUP BY 1, 2 HAVING max(fare) > 150) v GROUP BY vendor HAVING count(*) >= 30
--> KH110

SELECT vendor, avg(n) FROM (SELECT vendor, pickup::date AS day, count(*) AS n FROM trips GROUP BY 1, 2) v GROUP BY vendor HAVING avg(n) > 50
--> KH110

SELECT zone FROM trips GROUP BY zone HAVING stddev_samp(fare) / avg(fare) > 0.8
--> KH204

SELECT zone FROM trips GROUP BY zone HAVING count(*)::numeric / count(DISTINCT pickup::date) > 250
--> KH204
