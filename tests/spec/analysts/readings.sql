-- # What analysts write about a building's sensors, each reading protected, by the families of docs/asking.md.
-- # numbers
SELECT sensor, avg(temperature) AS avg_temp, stddev(temperature) AS sd FROM readings GROUP BY sensor HAVING avg(temperature) > 12 AND count(*) > 1000
--> planned

SELECT sensor, day, min(temperature), max(temperature) FROM readings GROUP BY sensor, day HAVING count(*) > 100 ORDER BY day, sensor
--> planned

SELECT site, COUNT(1) AS "Count", AVG(humidity)::numeric(10,2) AS "Avg. humidity" FROM readings GROUP BY site HAVING COUNT(1) > 10000
--> planned

SELECT sensor, count(*) FROM readings GROUP BY sensor
--> KH101

SELECT sensor, corr(temperature, humidity) FROM readings GROUP BY sensor HAVING count(*) > 2000
--> planned

-- # key
SELECT date_trunc('hour', read_at) AS hour, avg(temperature) FROM readings WHERE read_at >= '2024-03-10' AND read_at < '2024-03-11' GROUP BY 1 HAVING count(*) > 30 ORDER BY 1
--> planned

SELECT date_bin('15 minutes', read_at, TIMESTAMP '2024-03-10') AS bucket FROM readings WHERE read_at BETWEEN '2024-03-10 08:00' AND '2024-03-10 12:00' GROUP BY bucket HAVING count(*) > 5
--> planned

SELECT width_bucket(temperature, 0, 30, 6) AS bucket FROM readings GROUP BY bucket HAVING count(*) > 1000 ORDER BY bucket
--> planned

SELECT floor(humidity / 5) * 5 AS hum_bin, count(*) FROM readings GROUP BY hum_bin HAVING count(*) > 500
--> planned

SELECT round(temperature) AS t FROM readings GROUP BY round(temperature) HAVING count(*) > 2000
--> planned

SELECT round(temperature::numeric, 0)::int AS t FROM readings GROUP BY 1 HAVING count(*) > 2000
--> planned

SELECT split_part(firmware, '.', 1) AS major, count(*) FROM readings GROUP BY major HAVING count(*) > 10000
--> planned

SELECT substring(sensor FROM 3)::int AS no FROM readings GROUP BY 1 HAVING count(*) > 5000
--> planned

SELECT CASE WHEN EXTRACT(hour FROM read_at) BETWEEN 6 AND 21 THEN 'day' ELSE 'night' END AS part, site FROM readings GROUP BY 1, 2 HAVING avg(temperature) > 11
--> planned

SELECT error_code IS NOT NULL AS failed, sensor FROM readings GROUP BY 1, 2 HAVING count(*) > 500
--> planned

SELECT battery / 20 AS level FROM readings GROUP BY level HAVING count(*) > 5000
--> planned

SELECT extract(week FROM day) AS wk, extract(isoyear FROM day) AS yr FROM readings GROUP BY 1, 2 HAVING count(*) > 8000
--> planned

SELECT to_char(read_at, 'HH24') AS hh FROM readings GROUP BY 1 HAVING count(*) FILTER (WHERE NOT ok) > 200
--> planned

SELECT read_at::time >= TIME '12:00' AS afternoon FROM readings GROUP BY 1 HAVING count(*) > 1000
--> planned

SELECT LEAST(co2 / 500, 4) AS co2_class FROM readings GROUP BY LEAST(co2 / 500, 4) HAVING count(*) > 2000
--> planned

SELECT CASE error_code WHEN 'E01' THEN 'power' WHEN 'E02' THEN 'network' ELSE 'other' END AS reason, COUNT(*) FROM readings WHERE error_code IS NOT NULL GROUP BY 1 HAVING COUNT(*) > 1000
--> planned

-- # row
SELECT sensor FROM readings WHERE temperature * 9 / 5 + 32 > 80 GROUP BY sensor HAVING count(*) > 100
--> planned

SELECT sensor FROM readings WHERE abs(temperature - 21) > 3 AND humidity::int % 2 = 0 GROUP BY sensor HAVING count(*) > 1000
--> planned

SELECT site FROM readings WHERE error_code LIKE 'E%' OR error_code ~ '^W' GROUP BY site HAVING count(*) > 1000
--> planned

SELECT site FROM readings WHERE temperature - ((100 - humidity) / 5.0) > 10 GROUP BY site HAVING count(*) > 500
--> planned

SELECT sensor FROM readings WHERE coalesce(error_code, '') = '' AND NOT ok GROUP BY sensor HAVING count(*) > 200
--> planned

SELECT sensor FROM readings WHERE read_at::date = DATE '2024-03-31' AND read_at::time BETWEEN '02:00' AND '03:00' GROUP BY sensor HAVING count(*) > 3
--> planned

SELECT site FROM readings WHERE sqrt(power(temperature, 2)) > 20 GROUP BY site HAVING count(*) > 500
--> KH205

SELECT site FROM readings GROUP BY site HAVING sum(temperature * humidity / 100) > 50000
--> planned

-- # guard
SELECT sensor FROM readings GROUP BY sensor HAVING min(battery) < 5
--> planned

SELECT sensor FROM readings GROUP BY sensor HAVING max(temperature) - min(temperature) > 20
--> KH204

SELECT sensor FROM readings GROUP BY sensor HAVING stddev_samp(temperature) > 5
--> planned

SELECT sensor FROM readings GROUP BY sensor HAVING avg(temperature) FILTER (WHERE ok) > 11.5
--> planned

SELECT site FROM readings GROUP BY site HAVING avg(temperature) FILTER (WHERE day >= '2024-04-01') > avg(temperature) FILTER (WHERE day < '2024-04-01')
--> planned

SELECT sensor FROM readings GROUP BY sensor HAVING 1 - sum(ok::int)::float / count(*) > 0.05
--> planned

SELECT sensor FROM readings GROUP BY sensor HAVING AVG(CASE WHEN ok THEN 0 ELSE 1 END) * 100 > 5
--> planned

SELECT sensor, site FROM readings GROUP BY CUBE (sensor, site) HAVING avg(co2) > 300
--> planned

SELECT sensor FROM readings GROUP BY sensor HAVING every(battery > 1)
--> planned

SELECT sensor FROM readings GROUP BY sensor HAVING avg(temperature) BETWEEN 10 AND 12
--> planned

-- # rank
SELECT sensor, avg(temperature) FROM readings GROUP BY sensor ORDER BY avg(temperature) DESC LIMIT 3
--> planned

SELECT site, sensor, rk FROM (SELECT site, sensor, rank() OVER (PARTITION BY site ORDER BY count(*) FILTER (WHERE NOT ok) DESC) AS rk FROM readings GROUP BY site, sensor) x WHERE rk <= 2
--> planned

SELECT sensor, ntile(4) OVER (ORDER BY count(*)) AS quartile FROM readings GROUP BY sensor
--> planned

SELECT day FROM readings GROUP BY day ORDER BY count(*) DESC FETCH FIRST 5 ROWS ONLY
--> planned

SELECT day FROM readings GROUP BY day ORDER BY count(*) DESC LIMIT 5 OFFSET 5
--> planned

-- # text
SELECT * FROM (SELECT sensor, count(*) AS cnt FROM readings GROUP BY sensor) AS virtual_table WHERE cnt > 5000 ORDER BY cnt DESC LIMIT 1000
--> planned

SELECT "source"."sensor" AS "sensor", "source"."count" AS "count" FROM (SELECT "public"."readings"."sensor" AS "sensor", COUNT(*) AS "count" FROM "public"."readings" GROUP BY "public"."readings"."sensor") "source" WHERE "source"."count" > 5000 ORDER BY "source"."sensor" ASC LIMIT 2000
--> planned

SELECT DATE_TRUNC('day', read_at) AS __timestamp, AVG(temperature) AS "AVG(temperature)" FROM readings WHERE read_at >= TO_TIMESTAMP('2024-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND read_at < TO_TIMESTAMP('2024-04-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('day', read_at) HAVING COUNT(*) > 100 ORDER BY "AVG(temperature)" DESC LIMIT 10000
--> planned

SELECT day, avg(temperature) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM readings
--> KH103

SELECT sensor, date_bin('15 minutes', read_at, timestamp '2024-03-01') AS slot FROM readings WHERE read_at >= '2024-03-01' AND read_at < '2024-03-02' GROUP BY 1, 2 HAVING avg(temperature) > 25
--> planned

SELECT sensor FROM readings GROUP BY sensor HAVING max(temperature) - min(temperature) > 30
--> KH204

SELECT split_part(firmware, '.', 1) AS major, site FROM readings WHERE NOT ok GROUP BY 1, 2 HAVING count(*) > 40
--> planned

SELECT site, CASE WHEN co2 > 1400 THEN 'bad' WHEN co2 > 1000 THEN 'moderate' WHEN co2 IS NULL THEN 'n/a' ELSE 'good' END AS air FROM readings GROUP BY 1, 2 HAVING count(*) > 1000
--> planned

SELECT site FROM readings GROUP BY site HAVING corr(temperature, humidity) > 0.5
--> KH204

SELECT sensor FROM readings GROUP BY sensor ORDER BY count(*) FILTER (WHERE NOT ok) DESC LIMIT 3
--> planned

SELECT floor(ln(co2 + 1)) AS magnitude FROM readings GROUP BY 1 HAVING count(*) > 500
--> KH202

SELECT site, extract(hour FROM read_at) BETWEEN 8 AND 17 AS daytime, avg(co2) FROM readings GROUP BY 1, 2 HAVING avg(co2) > 800
--> planned

SELECT width_bucket(humidity, 0, 100, 10) AS decile FROM readings GROUP BY decile HAVING count(*) > 1000 ORDER BY decile
--> planned

SELECT greatest(temperature, 0)::int / 5 AS band FROM readings GROUP BY 1 HAVING count(*) > 100
--> KH202

SELECT site, temperature * 9 / 5 + 32 > 80 AS hot FROM readings GROUP BY 1, 2 HAVING count(*) > 100
--> planned

SELECT site FROM readings WHERE error_code::int >= 400 GROUP BY site HAVING count(*) > 500
--> planned

SELECT site FROM readings WHERE CAST(split_part(firmware, '.', 1) AS integer) < 3 GROUP BY site HAVING count(*) > 500
--> planned

SELECT site FROM readings GROUP BY site HAVING count(*) FILTER (WHERE nullif(error_code, '')::int BETWEEN 500 AND 599) > 200
--> planned

SELECT site FROM readings WHERE round(temperature::numeric, 1) >= 30.5 GROUP BY site HAVING count(*) > 500
--> planned

SELECT site FROM readings WHERE round((temperature * 1.8 + 32)::numeric, 0) > 70 AND round(humidity, 0) < 40 GROUP BY site HAVING count(*) > 500
--> planned

SELECT site FROM readings WHERE CASE WHEN error_code ~ '^[0-9]+$' THEN error_code::int >= 500 ELSE false END GROUP BY site HAVING count(*) > 200
--> planned

SELECT site FROM readings GROUP BY site HAVING avg(error_code::int) > 400
--> planned

SELECT site FROM readings GROUP BY site HAVING sum(nullif(error_code, '')::numeric) > 100000
--> planned
