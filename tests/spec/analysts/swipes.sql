-- # What analysts and their tools write about badge swipes of a campus, card holders protected, by the families of docs/asking.md.
-- # key
SELECT DATE_TRUNC('day', swiped_at AT TIME ZONE 'Europe/Amsterdam')::date AS local_day, COUNT(*) AS swipes FROM swipes WHERE swiped_at >= '2025-11-01' AND swiped_at < '2025-12-01' GROUP BY 1 HAVING COUNT(*) > 500 ORDER BY 1
--> KH202

SELECT EXTRACT(HOUR FROM swiped_at) AS hr, building, COUNT(DISTINCT card_id) AS people FROM swipes WHERE direction = 'I' GROUP BY 1, 2 HAVING COUNT(DISTINCT card_id) > 500
--> planned

SELECT LEFT(building, 3) AS bld, floor >= 3 AS upper_floors, COUNT(*) FROM swipes GROUP BY LEFT(building, 3), floor >= 3 HAVING COUNT(*) > 5000
--> planned

SELECT CASE WHEN EXTRACT(DOW FROM swiped_at) IN (0, 6) THEN 'weekend' ELSE 'weekday' END AS day_type, person_type, COUNT(DISTINCT card_id) FROM swipes GROUP BY day_type, person_type HAVING COUNT(DISTINCT card_id) > 100
--> planned

SELECT ROUND(temperature) AS degrees, COUNT(*) FROM swipes WHERE temperature BETWEEN 15 AND 28 GROUP BY ROUND(temperature) HAVING COUNT(*) > 8000 ORDER BY degrees
--> planned

SELECT CASE person_type WHEN 'STU' THEN 'Student' WHEN 'FAC' THEN 'Faculty' WHEN 'STF' THEN 'Staff' ELSE 'Other' END AS who, COALESCE(school, 'n/a') AS school, COUNT(*) AS n FROM swipes GROUP BY 1, 2 HAVING COUNT(*) > 2000 ORDER BY n DESC
--> planned

-- # row
SELECT building, COUNT(*) AS long_stays FROM swipes WHERE dwell_seconds / 3600.0 > 2 AND granted GROUP BY building HAVING COUNT(*) > 500
--> planned

SELECT building FROM swipes WHERE door = building || '-1' AND NOT granted GROUP BY building HAVING COUNT(*) > 100
--> planned

SELECT school, COUNT(DISTINCT card_id) AS night_owls FROM swipes WHERE swiped_at::time > '20:00' OR swiped_at::time < '06:00' GROUP BY school HAVING COUNT(DISTINCT card_id) > 150
--> planned

SELECT building, AVG(dwell_seconds / 60.0) AS avg_min FROM swipes WHERE dwell_seconds IS NOT NULL GROUP BY building HAVING AVG(dwell_seconds / 60.0) > 40
--> planned

SELECT person_type FROM swipes WHERE swiped_at BETWEEN '2025-12-01 00:00:00+01' AND '2025-12-31 23:59:59+01' AND deny_reason LIKE '%access%' GROUP BY person_type HAVING COUNT(*) > 50
--> planned

SELECT term, SUM(printed_pages * 0.05) AS print_cost FROM swipes WHERE building = 'LIB' GROUP BY term HAVING SUM(printed_pages * 0.05) > 1000
--> planned

-- # guard
SELECT building, COUNT(*) FILTER (WHERE NOT granted) * 100.0 / COUNT(*) AS denied_pct FROM swipes GROUP BY building HAVING COUNT(*) FILTER (WHERE NOT granted) * 100.0 / COUNT(*) > 5
--> planned

SELECT school, MEDIAN(dwell_seconds) FROM swipes GROUP BY school HAVING MEDIAN(dwell_seconds) > 1800
--> planned

SELECT building, term FROM swipes GROUP BY building, term HAVING (COUNT(DISTINCT card_id) > 2000) = (AVG(temperature) > 21)
--> planned

SELECT building, BOOL_OR(temperature > 30) AS overheated FROM swipes GROUP BY building HAVING BOOL_OR(temperature > 30)
--> planned

SELECT person_type, COUNT(*) / COUNT(DISTINCT card_id) AS swipes_per_person FROM swipes GROUP BY person_type HAVING COUNT(*) / COUNT(DISTINCT card_id) >= 20
--> planned

SELECT building, direction, GROUPING(direction) AS is_total, COUNT(*) FROM swipes GROUP BY ROLLUP (building, direction) HAVING COUNT(*) > 8000 ORDER BY building, GROUPING(direction)
--> planned

-- # rank
SELECT building, COUNT(DISTINCT card_id) AS visitors FROM swipes GROUP BY building ORDER BY visitors DESC LIMIT 3
--> planned

SELECT school, building FROM (SELECT school, building, RANK() OVER (PARTITION BY school ORDER BY COUNT(*) DESC) rk FROM swipes WHERE school IS NOT NULL GROUP BY school, building) t WHERE t.rk = 1
--> planned

SELECT building, AVG(dwell_seconds) AS avg_dwell FROM swipes GROUP BY building HAVING COUNT(dwell_seconds) > 1000 ORDER BY avg_dwell DESC LIMIT 2
--> planned

SELECT DATE_TRUNC('month', swiped_at) AS mon, building FROM swipes GROUP BY 1, 2 ORDER BY COUNT(*) DESC LIMIT 10
--> planned

SELECT building, CASE NTILE(3) OVER (ORDER BY COUNT(*) DESC) WHEN 1 THEN 'busy' WHEN 2 THEN 'medium' ELSE 'quiet' END AS traffic FROM swipes GROUP BY building
--> planned

SELECT building, ROW_NUMBER() OVER (ORDER BY SUM(printed_pages) DESC) AS pos FROM swipes WHERE building IN ('LIB', 'HALL', 'CAF', 'ADM') GROUP BY building ORDER BY pos LIMIT 1
--> planned

-- # text
WITH daily AS (SELECT CAST(swiped_at AS DATE) AS d, building, COUNT(*) AS c FROM swipes WHERE swiped_at >= TIMESTAMPTZ '2025-10-06 00:00+00' AND swiped_at < TIMESTAMPTZ '2025-10-13 00:00+00' GROUP BY 1, 2) SELECT d, building FROM daily WHERE c > 80 ORDER BY d, building
--> planned

SELECT "swipes"."building" AS "building", COUNT(DISTINCT "swipes"."card_id") AS "ctd:card_id:ok" FROM "public"."swipes" "swipes" WHERE (NOT ("swipes"."person_type" = 'VIS')) GROUP BY 1 HAVING (COUNT(1) > 5000)
--> planned

SELECT building, COUNT(*) AS n, SUM(CASE WHEN granted THEN 0 ELSE 1 END) AS denied FROM swipes GROUP BY building HAVING n > 5000 AND denied > 300 ORDER BY denied DESC
--> KH201

SELECT s.building, s.term, s.n FROM (SELECT building, term, COUNT(DISTINCT card_id) n FROM swipes GROUP BY building, term) s WHERE s.n >= 1500 AND s.term = '2025-1' ORDER BY s.n
--> planned

SELECT person_type::varchar(10) AS pt, COUNT(*)::numeric AS n FROM swipes GROUP BY person_type::varchar(10) HAVING COUNT(*)::numeric > 10000.0
--> planned

SELECT building FROM swipes GROUP BY building HAVING COUNT(*) > 5000 EXCEPT SELECT building FROM swipes WHERE person_type = 'FAC' GROUP BY building HAVING COUNT(DISTINCT card_id) > 200
--> planned

SELECT DISTINCT building, COUNT(*) OVER (PARTITION BY building) AS cnt FROM swipes
--> KH103

-- # once more, of all families, on what had been mended then
SELECT DATE_TRUNC('week', swiped_at) AS week, COUNT(DISTINCT card_id) AS people FROM swipes GROUP BY DATE_TRUNC('week', swiped_at) HAVING COUNT(DISTINCT card_id) > 1500 ORDER BY week
--> planned

SELECT RIGHT(door, 1) AS door_no, COUNT(*) FROM swipes WHERE building IN ('LIB', 'GYM') GROUP BY RIGHT(door, 1) HAVING COUNT(*) > 3000
--> KH202

SELECT dwell_seconds / 600 * 10 AS minutes_from, COUNT(*) FROM swipes WHERE dwell_seconds < 7200 GROUP BY 1 HAVING COUNT(*) > 5000
--> planned

SELECT building, COUNT(*) FROM swipes WHERE EXTRACT(DOW FROM swiped_at) NOT IN (0, 6) AND swiped_at::time BETWEEN '08:00' AND '09:59:59' GROUP BY building HAVING COUNT(*) > 800
--> planned

SELECT building FROM swipes WHERE temperature * 1.8 + 32 > 75 GROUP BY building HAVING COUNT(*) > 1000
--> planned

SELECT person_type, SUM(CASE WHEN direction = 'I' THEN 1 ELSE 0 END) - SUM(CASE WHEN direction = 'O' THEN 1 ELSE 0 END) AS net FROM swipes GROUP BY person_type HAVING SUM(CASE WHEN direction = 'I' THEN 1 ELSE 0 END) - SUM(CASE WHEN direction = 'O' THEN 1 ELSE 0 END) > 1000
--> planned

SELECT building, VARIANCE(temperature) FROM swipes GROUP BY building HAVING VARIANCE(temperature) < 7
--> planned

SELECT building, term, RANK() OVER (PARTITION BY term ORDER BY COUNT(DISTINCT card_id) DESC) AS rnk FROM swipes GROUP BY building, term
--> planned

WITH r AS (SELECT EXTRACT(HOUR FROM swiped_at) AS hr, COUNT(*) AS c FROM swipes GROUP BY 1) SELECT hr FROM r ORDER BY c DESC LIMIT 3
--> planned

SELECT building, COUNT(*) AS swipes, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM swipes GROUP BY building HAVING COUNT(*) > 10000 ORDER BY pct DESC
--> planned

SELECT "t0"."building" AS "building", SUM("t0"."printed_pages") AS "pages" FROM "public"."swipes" "t0" INNER JOIN (SELECT "building" AS "building", COUNT(*) AS "x__alias__0" FROM "public"."swipes" GROUP BY 1 ORDER BY 2 DESC LIMIT 3) "t1" ON ("t0"."building" = "t1"."building") GROUP BY 1
--> KH107

SELECT (CASE WHEN s.person_type = 'STU' THEN 'student' ELSE 'other' END)::varchar(20) AS grp, COUNT(*) n FROM swipes AS s GROUP BY grp HAVING COUNT(*) BETWEEN 10000 AND 80000
--> planned
