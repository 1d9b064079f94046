-- # What analysts write about hired bicycles, each ride protected, with public tables beside them.
-- # key
SELECT s.district, s.capacity, count(*) AS trips FROM rides r JOIN stations s ON s.station_id = r.start_station_id GROUP BY s.district, s.capacity HAVING count(*) < 300 ORDER BY trips
--> planned

SELECT district, COUNT(*) AS rides, AVG(distance_m) AS mean_m FROM (SELECT r.*, s.district, s.capacity FROM rides r JOIN stations s ON r.start_station_id = s.station_id) AS virtual_table WHERE started_at >= '2024-06-01' AND started_at < '2024-09-01' GROUP BY district HAVING COUNT(*) > 1000 ORDER BY rides DESC LIMIT 100
--> planned

SELECT s.name FROM stations s LEFT JOIN (SELECT * FROM rides WHERE rider_type = 'casual') c ON c.start_station_id = s.station_id GROUP BY s.name HAVING count(c.ride_id) < 50
--> planned

WITH trips AS (SELECT r.ride_id, r.fare, a.district AS from_district, b.district AS to_district FROM rides r JOIN stations a ON a.station_id = r.start_station_id JOIN stations b ON b.station_id = r.end_station_id) SELECT from_district, to_district, count(*) FROM trips WHERE from_district <> to_district GROUP BY 1, 2 HAVING count(*) > 500
--> planned

SELECT date_trunc('week', started_at + interval '1 day') - interval '1 day' AS week FROM rides WHERE started_at >= '2024-03-03' AND started_at < '2024-06-02' GROUP BY 1 HAVING count(*) > 2000
--> planned

SELECT extract(year FROM started_at + interval '3 months') AS fiscal_year, rider_type FROM rides WHERE started_at >= '2024-01-01' AND started_at < '2025-01-01' GROUP BY 1, 2 HAVING sum(fare) > 20000
--> planned

SELECT CASE WHEN ended_at - started_at < interval '5 minutes' THEN '0-5' WHEN ended_at - started_at < interval '20 minutes' THEN '5-20' ELSE '20+' END AS duration, bike_type, count(*) FROM rides GROUP BY 1, 2 HAVING count(*) > 800
--> planned

SELECT floor(log(distance_m)) AS magnitude, count(*) FROM rides WHERE distance_m >= 1 GROUP BY 1 HAVING count(*) > 1000
--> KH202

SELECT start_station_id, stddev(distance_m) / avg(distance_m) AS cv FROM rides GROUP BY start_station_id HAVING stddev(distance_m) / avg(distance_m) > 0.8
--> KH204

SELECT start_station_id, count(*) / count(DISTINCT started_at::date) AS per_day FROM rides GROUP BY 1 HAVING count(*) / count(DISTINCT started_at::date) > 40
--> KH204

SELECT bike_type FROM rides GROUP BY bike_type HAVING max(battery) - min(battery) > 60
--> KH204

SELECT extract(hour FROM started_at) AS hour, extract(isodow FROM started_at) < 6 AS workday, avg(extract(epoch FROM ended_at - started_at) / 60) AS minutes FROM rides GROUP BY 1, 2 HAVING avg(extract(epoch FROM ended_at - started_at) / 60) > 15
--> planned

SELECT 2024 - birth_year AS age, rider_type FROM rides WHERE birth_year IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 400
--> planned

SELECT s.district, count(*) FILTER (WHERE r.start_station_id = r.end_station_id) * 100.0 / count(*) AS round_trips FROM rides r JOIN stations s ON s.station_id = r.start_station_id GROUP BY s.district HAVING count(*) FILTER (WHERE r.start_station_id = r.end_station_id) * 100.0 / count(*) > 5
--> planned

SELECT name, rides FROM (SELECT s.name, count(*) AS rides, rank() OVER (ORDER BY count(*) DESC) AS place FROM rides r JOIN stations s ON s.station_id = r.end_station_id GROUP BY s.name) ranked WHERE place <= 10
--> planned

SELECT district, name FROM (SELECT s.district, s.name, row_number() OVER (PARTITION BY s.district ORDER BY count(*) DESC) AS rn FROM rides r JOIN stations s ON s.station_id = r.start_station_id GROUP BY s.district, s.name) t WHERE rn <= 3
--> planned

SELECT rider_type, count(*) FROM rides WHERE distance_m / nullif(extract(epoch FROM ended_at - started_at), 0) * 3.6 > 25 GROUP BY rider_type HAVING count(*) > 500
--> planned

SELECT start_station_id FROM rides GROUP BY start_station_id HAVING avg(CASE WHEN bike_type = 'electric' THEN 1.0 ELSE 0 END) >= 0.5
--> planned

SELECT w.windy, r.rider_type, avg(r.distance_m) FROM rides r JOIN weather w ON w.day = r.started_at::date GROUP BY 1, 2 HAVING avg(r.distance_m) < 3000
--> planned

SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM rides GROUP BY month HAVING count(*) > 5000 ORDER BY month
--> planned

SELECT a.start_station_id FROM (SELECT start_station_id, count(*) AS n FROM rides GROUP BY 1) a JOIN (SELECT end_station_id, count(*) AS m FROM rides GROUP BY 1) b ON a.start_station_id = b.end_station_id WHERE a.n > 2000 AND b.m > 2000
--> planned

SELECT coalesce(bike_type, 'all bikes') AS bike, coalesce(rider_type, 'all riders') AS rider, count(*) FROM rides GROUP BY ROLLUP (bike_type, rider_type) HAVING count(*) > 10000
--> planned

SELECT start_station_id FROM rides GROUP BY 1 HAVING max(started_at)::date - min(started_at)::date > 30
--> KH204

SELECT start_station_id, extract(epoch FROM max(started_at) - min(started_at)) / 86400 AS days FROM rides GROUP BY 1 HAVING extract(epoch FROM max(started_at) - min(started_at)) / 86400 > 90
--> KH204

SELECT start_station_id FROM (SELECT start_station_id, max(fare) AS hi, min(fare) AS lo FROM rides GROUP BY 1) q WHERE hi - lo > 20
--> KH204

SELECT bike_type FROM rides GROUP BY bike_type HAVING percentile_cont(0.9) WITHIN GROUP (ORDER BY fare) > 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY fare)
--> KH208

SELECT bike_type, month FROM rides GROUP BY 1, 2 HAVING max(fare) > 3 * avg(fare)
--> KH208
