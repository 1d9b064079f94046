-- # What analysts and their tools write about appointments of a clinic, patients protected through the episodes that these belong to, by the families of docs/asking.md.
-- # key
SELECT CASE WHEN "Fee Charged" < 50 THEN 'low' WHEN "Fee Charged" < 150 THEN 'medium' WHEN "Fee Charged" >= 150 THEN 'high' ELSE 'unknown' END AS "Fee Band", COUNT(*) AS appointments FROM appointments GROUP BY 1 HAVING COUNT(*) > 1000 ORDER BY 2 DESC
--> planned

SELECT TO_CHAR("Start Time", 'Day') AS weekday, COUNT(*) AS visits FROM appointments WHERE "Status" = 'attended' GROUP BY TO_CHAR("Start Time", 'Day') HAVING COUNT(*) > 3000
--> planned

SELECT EXTRACT(HOUR FROM "Start Time") AS hour_of_day, "Clinic Code", COUNT(*) FROM appointments GROUP BY EXTRACT(HOUR FROM "Start Time"), "Clinic Code" HAVING COUNT(*) >= 500 ORDER BY 1
--> planned

SELECT DATE_TRUNC('quarter', "Start Time") AS "Quarter", SUM("Fee Charged") AS "Revenue" FROM appointments WHERE "Start Time" >= '2024-01-01' AND "Start Time" < '2026-01-01' GROUP BY DATE_TRUNC('quarter', "Start Time") HAVING SUM("Fee Charged") > 500000 ORDER BY "Quarter"
--> planned

SELECT COALESCE("Pain Score"::text, 'not recorded') AS pain, COUNT(*) FROM appointments GROUP BY COALESCE("Pain Score"::text, 'not recorded') HAVING COUNT(*) > 2000
--> planned

SELECT INITCAP("Status") AS "Status Label", UPPER(LEFT("Specialty", 3)) AS spec, COUNT(*) AS n FROM appointments GROUP BY 1, 2 HAVING COUNT(*) > 800
--> planned

SELECT EXTRACT(YEAR FROM AGE(a."Start Time", p."Birth Date"))::int / 10 * 10 AS "Age Decade", COUNT(*) AS visits FROM appointments a JOIN episodes e ON a."Episode No" = e."Episode No" JOIN patients p ON e."Patient ID" = p."Patient ID" GROUP BY 1 HAVING COUNT(*) > 3000 ORDER BY 1
--> KH202

SELECT extract(year FROM "Birth Date") FROM patients GROUP BY 1 HAVING COUNT(*) > 30
--> planned

SELECT floor(extract(year FROM "Birth Date") / 10) * 10 FROM patients GROUP BY 1 HAVING COUNT(*) > 30
--> planned

SELECT date_trunc('year', "Birth Date") FROM patients GROUP BY 1 HAVING COUNT(*) > 30
--> planned

SELECT to_char("Birth Date", 'YYYY') FROM patients GROUP BY 1 HAVING COUNT(*) > 30
--> planned

SELECT extract(year FROM age(DATE '2025-01-01', "Birth Date")) FROM patients GROUP BY 1 HAVING COUNT(*) > 30
--> planned

SELECT CASE WHEN "Birth Date" < DATE '2007-01-01' THEN 'adult' ELSE 'child' END FROM patients GROUP BY 1 HAVING COUNT(*) > 30
--> planned

SELECT CASE WHEN extract(year FROM age(DATE '2025-01-01', "Birth Date")) >= 18 THEN 'adult' ELSE 'child' END FROM patients GROUP BY 1 HAVING COUNT(*) > 30
--> planned

SELECT DATE '2025-01-01' - "Birth Date" > 6570 FROM patients GROUP BY 1 HAVING COUNT(*) > 30
--> planned

SELECT (DATE '2025-01-01' - "Birth Date") / 365 FROM patients GROUP BY 1 HAVING COUNT(*) > 30
--> planned

-- # row
SELECT "Clinic Code", COUNT(*) AS late_starts FROM appointments WHERE "Checked In" > "Start Time" GROUP BY "Clinic Code" HAVING COUNT(*) > 500
--> planned

SELECT "Specialty", AVG(EXTRACT(EPOCH FROM ("End Time" - "Start Time")) / 60) AS avg_minutes FROM appointments WHERE "Status" = 'attended' GROUP BY "Specialty" HAVING AVG(EXTRACT(EPOCH FROM ("End Time" - "Start Time")) / 60) > 35
--> planned

SELECT "Clinic Code" FROM appointments WHERE "Start Time"::date - "Booked At"::date > 60 AND "Status" <> 'cancelled' GROUP BY "Clinic Code" HAVING COUNT(*) > 800
--> planned

SELECT c."Region", COUNT(*) AS weekend_visits FROM appointments a INNER JOIN clinics c ON c."Clinic Code" = a."Clinic Code" WHERE EXTRACT(ISODOW FROM a."Start Time") IN (6, 7) AND a."Status" ILIKE '%attend%' GROUP BY c."Region" HAVING COUNT(*) > 2000
--> planned

SELECT "Specialty" FROM appointments WHERE "Fee Charged" / NULLIF(EXTRACT(EPOCH FROM "End Time" - "Start Time") / 60.0, 0) > 5 GROUP BY "Specialty" HAVING COUNT(*) >= 400
--> planned

SELECT "Clinic Code", COUNT(DISTINCT "Episode No") AS episodes FROM appointments WHERE "Checked In" IS NULL AND "Status" = 'attended' OR "Pain Score" BETWEEN 8 AND 10 GROUP BY "Clinic Code" HAVING COUNT(DISTINCT "Episode No") > 300
--> planned

SELECT e."Referral Source", COUNT(*) FROM appointments a JOIN episodes e USING ("Episode No") WHERE a."Start Time" < e."Opened" + INTERVAL '90 days' GROUP BY e."Referral Source" HAVING COUNT(*) > 1000
--> planned

-- # guard
SELECT "Clinic Code", AVG("Fee Charged") AS avg_fee FROM appointments GROUP BY "Clinic Code" HAVING AVG("Fee Charged") >= 140 ORDER BY avg_fee DESC
--> planned

SELECT "Clinic Code", ROUND(100.0 * SUM(CASE WHEN "Status" = 'no-show' THEN 1 ELSE 0 END) / COUNT(*), 1) AS no_show_rate FROM appointments GROUP BY "Clinic Code" HAVING ROUND(100.0 * SUM(CASE WHEN "Status" = 'no-show' THEN 1 ELSE 0 END) / COUNT(*), 1) > 9.5
--> planned

SELECT "Specialty", PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "Fee Charged") AS median_fee FROM appointments GROUP BY "Specialty" HAVING PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "Fee Charged") > 120
--> planned

SELECT "Clinic Code", "Status", COUNT(*) FROM appointments GROUP BY ROLLUP("Clinic Code", "Status") HAVING COUNT(*) > 1000
--> planned

SELECT COALESCE(c."Region", 'All regions') AS region, SUM(a."Fee Charged") AS revenue FROM appointments a JOIN clinics c ON a."Clinic Code" = c."Clinic Code" GROUP BY GROUPING SETS ((c."Region"), ()) HAVING SUM(a."Fee Charged") > 1000000
--> planned

SELECT p."Insurance Type", SUM(a."Fee Charged") / COUNT(DISTINCT p."Patient ID") AS fee_per_patient FROM appointments a JOIN episodes e ON a."Episode No" = e."Episode No" JOIN patients p ON e."Patient ID" = p."Patient ID" GROUP BY p."Insurance Type" HAVING SUM(a."Fee Charged") / COUNT(DISTINCT p."Patient ID") > 800
--> planned

SELECT "Clinic Code" FROM appointments GROUP BY "Clinic Code" HAVING MAX("Pain Score") = 10 AND MIN("Fee Charged") < 25
--> planned

-- # rank
SELECT "Clinic Code", COUNT(*) AS n FROM appointments WHERE "Status" = 'attended' GROUP BY "Clinic Code" ORDER BY n DESC LIMIT 3
--> planned

SELECT * FROM (SELECT "Specialty", "Clinic Code", COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY "Specialty" ORDER BY COUNT(*) DESC) AS rn FROM appointments GROUP BY "Specialty", "Clinic Code") t WHERE rn = 1
--> planned

SELECT "Clinic Code", AVG("Fee Charged") AS avg_fee FROM appointments GROUP BY "Clinic Code" HAVING COUNT(*) >= 1000 ORDER BY AVG("Fee Charged") DESC FETCH FIRST 3 ROWS ONLY
--> planned

SELECT DISTINCT ON ("Specialty") "Specialty", "Status", COUNT(*) AS cnt FROM appointments WHERE "Status" <> 'attended' GROUP BY "Specialty", "Status" ORDER BY "Specialty", cnt DESC
--> planned

WITH fees AS (SELECT "Clinic Code", SUM("Fee Charged") AS total_fee FROM appointments GROUP BY "Clinic Code"), ranked AS (SELECT "Clinic Code", total_fee, RANK() OVER (ORDER BY total_fee DESC) AS fee_rank FROM fees) SELECT "Clinic Code", total_fee, fee_rank FROM ranked WHERE fee_rank <= 3 ORDER BY fee_rank
--> planned

SELECT "Clinic Code", NTILE(4) OVER (ORDER BY COUNT(*) DESC) AS quartile FROM appointments GROUP BY "Clinic Code"
--> planned

SELECT TOP_CLINICS."Clinic Code" FROM (SELECT "Clinic Code", COUNT(DISTINCT "Episode No") AS eps FROM appointments GROUP BY "Clinic Code" ORDER BY eps DESC LIMIT 2) AS TOP_CLINICS
--> planned

-- # text
WITH attended AS (SELECT * FROM appointments WHERE "Status" = 'attended'), by_clinic AS (SELECT "Clinic Code", COUNT(*) AS visits, SUM("Fee Charged") AS revenue FROM attended GROUP BY "Clinic Code") SELECT "Clinic Code", visits, revenue, revenue / visits AS revenue_per_visit FROM by_clinic WHERE visits > 2000 ORDER BY revenue DESC
--> planned

SELECT c."Clinic Code", c."Clinic Name" FROM clinics c WHERE NOT EXISTS (SELECT 1 FROM appointments a WHERE a."Clinic Code" = c."Clinic Code" AND a."Specialty" = 'Surgery' GROUP BY a."Clinic Code" HAVING COUNT(*) > 400)
--> planned

SELECT "source"."Clinics__Region" AS "Clinics__Region", COUNT(*) AS "count" FROM (SELECT "public".appointments."Status" AS "Status", clinics."Region" AS "Clinics__Region" FROM "public".appointments LEFT JOIN "public".clinics AS clinics ON "public".appointments."Clinic Code" = clinics."Clinic Code") AS "source" WHERE "source"."Status" = 'attended' GROUP BY "source"."Clinics__Region" HAVING COUNT(*) > 5000 ORDER BY "source"."Clinics__Region" ASC
--> planned

SELECT CAST(DATE_TRUNC('month', "Start Time") AS date) AS "Month", COUNT(*)::int AS "Visits" FROM appointments GROUP BY CAST(DATE_TRUNC('month', "Start Time") AS date) HAVING COUNT(*) > 2000 ORDER BY "Month" DESC
--> planned

SELECT "Clinic Name", n FROM (SELECT "Clinic Code", COUNT(*) AS n FROM appointments GROUP BY "Clinic Code" HAVING COUNT(*) > 4000) q JOIN clinics c ON c."Clinic Code" = q."Clinic Code" ORDER BY n DESC
--> planned

SELECT "Referral Source", "Diagnosis Group", COUNT(*) AS appts, CASE WHEN COUNT(*) > 2500 THEN 'busy' ELSE 'quiet' END AS load FROM appointments JOIN episodes USING ("Episode No") GROUP BY "Referral Source", "Diagnosis Group"
--> planned

SELECT "Clinic Code", COUNT(*) AS total FROM appointments GROUP BY "Clinic Code" HAVING total > 5000
--> KH201

-- # once more, of all families, on what had been mended then
SELECT EXTRACT(YEAR FROM "Birth Date") AS "Birth Year", COUNT(*) FROM patients GROUP BY EXTRACT(YEAR FROM "Birth Date") HAVING COUNT(*) > 60 ORDER BY 1
--> planned

SELECT CASE WHEN DATE_PART('hour', "Start Time") < 12 THEN 'AM' ELSE 'PM' END AS session, "Specialty", COUNT(*) AS n FROM appointments GROUP BY 1, 2 HAVING COUNT(*) > 2000 ORDER BY n DESC
--> planned

SELECT EXTRACT(DAY FROM "Start Time" - "Booked At")::int / 14 AS fortnights_waited, COUNT(*) FROM appointments WHERE "Start Time" >= "Booked At" GROUP BY 1 HAVING COUNT(*) > 3000
--> KH202

SELECT "Clinic Code", COUNT(*) FROM appointments WHERE EXTRACT(EPOCH FROM ("Start Time" - "Checked In")) / 60 BETWEEN 0 AND 15 GROUP BY "Clinic Code" HAVING COUNT(*) > 300
--> planned

SELECT e."Diagnosis Group" FROM episodes e JOIN patients p ON p."Patient ID" = e."Patient ID" WHERE AGE(e."Opened", p."Birth Date") >= INTERVAL '65 years' GROUP BY e."Diagnosis Group" HAVING COUNT(*) > 300
--> planned

SELECT "Specialty", SUM("Fee Charged" * 1.2) AS with_vat FROM appointments WHERE COALESCE("Pain Score", 0) + 1 > 5 GROUP BY "Specialty" HAVING SUM("Fee Charged" * 1.2) > 100000
--> planned

SELECT "Clinic Code", CAST(AVG("Pain Score") AS DECIMAL(10, 2)) AS avg_pain FROM appointments GROUP BY "Clinic Code" HAVING CAST(AVG("Pain Score") AS DECIMAL(10, 2)) >= 4.9
--> planned

SELECT "Clinic Code", SUM(CASE WHEN "Is First Visit" THEN "Fee Charged" ELSE 0 END) / NULLIF(SUM("Fee Charged"), 0) AS first_share FROM appointments GROUP BY "Clinic Code" HAVING SUM(CASE WHEN "Is First Visit" THEN "Fee Charged" ELSE 0 END) / NULLIF(SUM("Fee Charged"), 0) > 0.35
--> planned

SELECT "Specialty", "Is First Visit", COUNT(*) FROM appointments GROUP BY CUBE ("Specialty", "Is First Visit") HAVING COUNT(*) > 3000 AND GROUPING("Specialty", "Is First Visit") < 3
--> planned

SELECT "Clinic Name", visits FROM (SELECT c."Clinic Name", COUNT(*) AS visits, DENSE_RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM appointments a JOIN clinics c USING ("Clinic Code") GROUP BY c."Clinic Name") x WHERE r <= 3
--> planned

SELECT "Specialty", SUM("Fee Charged") FROM appointments GROUP BY "Specialty" ORDER BY 2 DESC OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY
--> planned

SELECT c."Region", SUM(x.n) AS visits FROM clinics c JOIN (SELECT "Clinic Code", COUNT(*) AS n FROM appointments GROUP BY "Clinic Code") x ON x."Clinic Code" = c."Clinic Code" GROUP BY c."Region" HAVING SUM(x.n) > 10000
--> KH110

WITH monthly AS (SELECT DATE_TRUNC('month', "Start Time") AS month, COUNT(*) AS visits FROM appointments GROUP BY 1) SELECT month, visits, CASE WHEN visits >= 2050 THEN 'above target' ELSE 'below target' END AS status FROM monthly ORDER BY month
--> planned
