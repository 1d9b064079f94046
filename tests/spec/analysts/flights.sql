-- # What analysts write about departures from New York in 2013, each flight protected, by the families of docs/asking.md.
-- # numbers
SELECT carrier, COUNT(*) AS n_flights, AVG(dep_delay) AS mean_delay FROM flights GROUP BY carrier HAVING AVG(dep_delay) > 15 ORDER BY mean_delay DESC
--> planned

SELECT origin, month, COUNT(*) FILTER (WHERE dep_time IS NULL) AS cancelled FROM flights GROUP BY origin, month HAVING COUNT(*) FILTER (WHERE dep_time IS NULL) > 200 ORDER BY 3 DESC
--> planned

SELECT a.name, count(*) AS flights FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name HAVING count(*) > 10000 ORDER BY flights DESC
--> planned

-- # key
SELECT CASE WHEN dep_delay <= 0 THEN 'on time' WHEN dep_delay <= 15 THEN 'slightly late' WHEN dep_delay > 15 THEN 'late' ELSE 'cancelled' END AS status, origin, count(*) FROM flights GROUP BY 1, 2 HAVING count(*) > 2000
--> planned

SELECT (month - 1) / 3 + 1 AS quarter, origin FROM flights GROUP BY quarter, origin HAVING avg(arr_delay) > 8
--> planned

SELECT sched_dep_time / 100 AS h FROM flights WHERE sched_dep_time BETWEEN 500 AND 2359 GROUP BY 1 HAVING avg(dep_delay) > 15
--> planned

SELECT distance / 500 * 500 AS dist_bin, avg(arr_delay) FROM flights GROUP BY 1 HAVING count(*) > 1000 ORDER BY 1
--> planned

SELECT time_hour::date AS d, count(*) FROM flights WHERE time_hour >= '2013-07-01' AND time_hour < '2013-08-01' GROUP BY 1 HAVING count(*) > 950
--> planned

SELECT month, count(*) AS n FROM flights WHERE dest IN ('LAX', 'SFO', 'SEA') GROUP BY month HAVING count(*) > 2500
--> planned

SELECT split_part(a.name, ' ', 1) AS airline FROM flights f JOIN airlines a USING (carrier) GROUP BY 1 HAVING count(*) > 20000
--> planned

SELECT month BETWEEN 6 AND 8 AS summer, carrier FROM flights GROUP BY 1, carrier HAVING avg(dep_delay) > 15
--> planned

-- # row
SELECT carrier FROM flights WHERE distance / (air_time / 60.0) > 450 GROUP BY carrier HAVING count(*) > 1000
--> planned

SELECT origin FROM flights WHERE arr_delay < dep_delay - 10 GROUP BY origin HAVING count(*) > 20000
--> planned

SELECT carrier FROM flights WHERE (arr_delay > 120) AND NOT (dep_delay > 0) GROUP BY carrier HAVING count(*) > 10
--> planned

SELECT origin FROM flights WHERE tailnum SIMILAR TO 'N[0-9]+(UA|AA)' GROUP BY origin HAVING count(*) > 1000
--> KH205

-- # guard
SELECT carrier FROM flights GROUP BY carrier HAVING AVG(CASE WHEN arr_delay > 15 THEN 1 ELSE 0 END) > 0.25
--> planned

SELECT carrier, origin FROM flights GROUP BY carrier, origin HAVING count(*) > 500 AND avg(arr_delay) - avg(dep_delay) < -5
--> planned

SELECT origin FROM flights GROUP BY origin HAVING sum(distance) / sum(air_time) * 60 > 400
--> planned

SELECT carrier FROM flights GROUP BY carrier HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY dep_delay) > 0
--> planned

-- # rank
SELECT carrier, AVG(arr_delay) FROM flights WHERE arr_delay IS NOT NULL GROUP BY carrier ORDER BY 2 DESC LIMIT 5
--> planned

SELECT origin, carrier, n FROM (SELECT origin, carrier, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY origin ORDER BY COUNT(*) DESC) AS rn FROM flights GROUP BY origin, carrier) x WHERE rn <= 2
--> planned

SELECT dest, COUNT(*) FROM flights GROUP BY dest ORDER BY COUNT(*) DESC LIMIT 10
--> KH202

-- # text
SELECT f.month, f.origin FROM flights AS f GROUP BY f.month, f.origin HAVING COUNT(*) > 9000 EXCEPT SELECT month, origin FROM flights GROUP BY month, origin HAVING AVG(dep_delay) > 15
--> planned

SELECT month, avg(dep_delay) > 12 AS bad, lag(avg(dep_delay) > 12) OVER (ORDER BY month) AS was_bad FROM flights GROUP BY month
--> planned
