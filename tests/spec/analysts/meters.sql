-- # An energy supplier's readings as analysts ask about them; the policy is meters.toml.
SELECT tariff, sum(kwh) AS total_kwh FROM readings GROUP BY tariff HAVING sum(kwh) > 200000 ORDER BY total_kwh DESC
--> planned
SELECT m.region, m.premises, avg(r.kwh) AS avg_kwh FROM readings r JOIN meters m ON m.meter_id = r.meter_id GROUP BY 1, 2 HAVING avg(r.kwh) > 20 AND count(*) >= 1000
--> planned
SELECT date_trunc('week', read_at) AS wk, sum(kwh) FROM readings WHERE read_at >= '2024-01-01' AND read_at < '2024-07-01' GROUP BY wk HAVING sum(kwh) > 60000
--> planned
SELECT date_trunc('month', read_at AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin') AS local_month, count(*) FROM readings WHERE read_at >= '2024-01-01' AND read_at < '2024-07-01' GROUP BY 1 HAVING count(*) > 10000
--> KH202
SELECT CASE WHEN extract(hour from read_at) BETWEEN 7 AND 22 THEN 'peak' ELSE 'off-peak' END AS period, tariff, sum(kwh) FROM readings GROUP BY 1, 2 HAVING sum(kwh) > 100000
--> planned
SELECT tariff, sum(kwh * price) AS revenue FROM readings GROUP BY tariff HAVING sum(kwh * price) > 10000000
--> planned
SELECT tariff, sum(peak_kwh) / sum(kwh) AS peak_share FROM readings GROUP BY tariff HAVING sum(peak_kwh) / sum(kwh) > 0.35
--> planned
SELECT m.region, sum(r.kwh) / count(DISTINCT r.meter_id) AS kwh_per_meter FROM readings r JOIN meters m USING (meter_id) GROUP BY m.region HAVING sum(r.kwh) / count(DISTINCT r.meter_id) > 300
--> planned
SELECT upper(trim(status)) AS st, count(*) FROM readings WHERE upper(trim(status)) IN ('OK', 'TAMPER', 'LOW BATTERY') GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT tariff FROM readings WHERE status ILIKE '%error%' GROUP BY tariff HAVING count(*) > 500
--> planned
SELECT tariff, avg(voltage) AS v FROM readings WHERE voltage > 0 GROUP BY tariff HAVING avg(voltage) NOT BETWEEN 225 AND 235
--> planned
SELECT floor(kwh / 5) * 5 AS kwh_from, count(*) FROM readings GROUP BY kwh_from HAVING count(*) > 5000 ORDER BY kwh_from
--> planned
SELECT estimated, tariff, count(*), round(avg(kwh)::numeric, 2) AS avg_kwh FROM readings GROUP BY estimated, tariff HAVING round(avg(kwh)::numeric, 2) > 19.5
--> planned
SELECT m.occupants, avg(r.kwh) FROM readings r JOIN meters m USING (meter_id) WHERE m.occupants IS NOT NULL GROUP BY m.occupants HAVING avg(r.kwh) >= 19
--> planned
SELECT CASE WHEN m.solar THEN 'solar' ELSE 'no solar' END AS kind, m.region, count(DISTINCT m.meter_id) FROM meters m GROUP BY 1, 2 HAVING count(DISTINCT m.meter_id) > 500
--> planned
SELECT extract(year from installed_on)::int AS yr, count(*) AS meters FROM meters GROUP BY extract(year from installed_on)::int HAVING count(*) > 250 ORDER BY meters DESC
--> planned
SELECT read_at::date AS d, sum(kwh) AS kwh FROM readings WHERE read_at::date BETWEEN '2024-06-01' AND '2024-06-30' GROUP BY d ORDER BY kwh DESC LIMIT 5
--> planned
SELECT region FROM meters GROUP BY region HAVING count(*) FILTER (WHERE solar) > 0.3 * count(*)
--> planned
SELECT region, percent FROM (SELECT region, 100 * avg(CASE WHEN solar THEN 1.0 ELSE 0 END) AS percent FROM meters GROUP BY region) s WHERE percent >= 30
--> planned
SELECT tariff FROM readings WHERE peak_kwh > kwh * 0.8 AND NOT estimated GROUP BY tariff HAVING count(DISTINCT meter_id) > 2000
--> planned
SELECT m.region, r.tariff, sum(r.kwh) AS s FROM readings r JOIN meters m ON r.meter_id = m.meter_id GROUP BY m.region, r.tariff ORDER BY s DESC FETCH FIRST 4 ROWS ONLY
--> planned
SELECT DISTINCT ON (region) region, tariff, total FROM (SELECT m.region, r.tariff, sum(r.kwh) AS total FROM readings r JOIN meters m USING (meter_id) GROUP BY 1, 2) t ORDER BY region, total DESC
--> planned
SELECT extract(dow from read_at) IN (0, 6) AS weekend, avg(kwh) FROM readings GROUP BY 1 HAVING avg(kwh) > 19.9
--> planned
SELECT "readings"."tariff" AS "tariff", COUNT(*) AS "count" FROM "public"."readings" WHERE ("readings"."read_at" >= timestamp '2024-03-01 00:00:00.000' AND "readings"."read_at" < timestamp '2024-04-01 00:00:00.000') GROUP BY "readings"."tariff" HAVING COUNT(*) > 3000 ORDER BY "readings"."tariff" ASC
--> planned
SELECT DATE_TRUNC('day', read_at) AS __timestamp, tariff AS tariff, SUM(kwh) AS "SUM(kwh)" FROM public.readings WHERE read_at >= TO_TIMESTAMP('2024-05-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND read_at < TO_TIMESTAMP('2024-05-15 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('day', read_at), tariff HAVING SUM(kwh) > 1500 ORDER BY "SUM(kwh)" DESC LIMIT 1000
--> planned
SELECT CAST(DATE_TRUNC('MONTH', CAST("t0"."read_at" AS TIMESTAMP)) AS DATE) AS "tmn:read_at:ok", SUM("t0"."kwh") AS "sum:kwh:ok" FROM "public"."readings" "t0" WHERE "t0"."tariff" IN ('basic', 'green') AND "t0"."read_at" >= '2024-01-01' AND "t0"."read_at" < '2024-07-01' GROUP BY 1 HAVING SUM("t0"."kwh") > 100000
--> planned
with source as (select * from readings), agg as (select tariff, estimated, count(*) as n_readings, avg(kwh) as avg_kwh from source where kwh is not null group by 1, 2) select tariff, estimated from agg where n_readings > 2000 and avg_kwh > 19
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING var_pop(kwh) > 100
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING mode() WITHIN GROUP (ORDER BY status) = 'OK'
--> KH204
SELECT region FROM meters WHERE installed_on < CURRENT_DATE - INTERVAL '10 years' GROUP BY region HAVING count(*) > 600
--> planned
SELECT r.tariff FROM readings r LEFT JOIN meters m ON m.meter_id = r.meter_id WHERE m.premises = 'farm' GROUP BY r.tariff HAVING max(r.kwh) >= 39 AND count(*) > 100
--> planned
SELECT concat(m.region, '-', m.premises) AS segment, count(*) AS n FROM meters m GROUP BY concat(m.region, '-', m.premises) HAVING count(*) > 300
--> planned
SELECT extract(month from read_at) AS mon, sum(kwh) FILTER (WHERE tariff = 'night') / sum(kwh) AS night_share FROM readings GROUP BY mon HAVING sum(kwh) FILTER (WHERE tariff = 'night') / sum(kwh) > 0.2
--> planned
SELECT trunc(voltage) AS v, count(*) FROM readings WHERE voltage IS NOT NULL GROUP BY 1 HAVING count(*) > 2000
--> planned
SELECT status, count(*) FROM readings WHERE status IN ('OK', 'TAMPER') GROUP BY status HAVING count(*) > 1000
--> planned
SELECT lower(status), count(*) FROM readings WHERE lower(status) = 'tamper' GROUP BY lower(status) HAVING count(*) > 1000
--> planned
SELECT coalesce(status, 'none') AS s, count(*) FROM readings WHERE coalesce(status, 'none') IN ('none', 'OK') GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT CASE WHEN status IS NULL THEN 'none' WHEN status ILIKE 'ok%' THEN 'fine' ELSE 'problem' END AS s, count(*) FROM readings GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT tariff, sum(kwh) / count(DISTINCT read_on) AS per_day FROM readings GROUP BY tariff HAVING sum(kwh) / count(DISTINCT read_on) > 1000
--> KH204
SELECT tariff, count(*) / count(DISTINCT date_trunc('month', read_at)) AS per_month FROM readings GROUP BY tariff HAVING count(*) / count(DISTINCT date_trunc('month', read_at)) > 3000
--> KH204
SELECT read_at AT TIME ZONE 'UTC' > timestamp '2024-03-01' AS late, count(*) FROM readings GROUP BY 1 HAVING count(*) > 100
--> KH202
SELECT tariff FROM readings WHERE read_at >= timestamptz '2024-03-01 00:00:00+00' GROUP BY tariff HAVING count(*) > 100
--> planned
SELECT extract(hour FROM read_at AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin') AS hr FROM readings GROUP BY 1 HAVING count(*) > 100
--> KH202
SELECT date_trunc('day', read_at + interval '1 hour') AS d FROM readings WHERE read_at >= '2024-03-01' AND read_at < '2024-04-01' GROUP BY 1 HAVING count(*) > 100
--> planned
SELECT r.tariff, m.region FROM readings r JOIN meters m USING (meter_id) WHERE r.read_at > m.installed_on + interval '1 year' GROUP BY 1, 2 HAVING avg(r.kwh) > 19
--> planned
SELECT CASE WHEN m.occupants >= 4 THEN 'large' WHEN m.occupants >= 2 THEN 'medium' ELSE 'small' END AS size, r.tariff, avg(r.kwh) FROM readings r JOIN meters m ON m.meter_id = r.meter_id GROUP BY 1, 2 HAVING count(*) > 2000
--> planned
SELECT r.tariff, sum(r.kwh * r.price) / sum(r.kwh) AS wavg FROM readings r GROUP BY 1 HAVING sum(r.kwh * r.price) / nullif(sum(r.kwh), 0) > 25
--> planned
SELECT age_years / 5 * 5 AS bucket, count(*) FROM (SELECT date_part('year', age(date '2024-12-31', installed_on))::int AS age_years FROM meters) x GROUP BY 1 HAVING count(*) > 400
--> planned
SELECT CASE upper(trim(status)) WHEN 'OK' THEN 'OK' WHEN 'TAMPER' THEN 'TAMPER' END AS st, count(*) FROM readings WHERE upper(trim(status)) IN ('OK', 'TAMPER', 'LOW BATTERY') GROUP BY 1 HAVING count(*) < 1000
--> planned
SELECT CASE WHEN coalesce(status, 'none') = 'OK' THEN 'OK' WHEN coalesce(status, 'none') = 'none' THEN 'none' END AS st, count(*) FROM readings WHERE coalesce(status, 'none') IN ('OK', 'none') GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT CASE lower(status) WHEN 'ok' THEN 'ok' WHEN 'tamper' THEN 'tamper' END AS st, count(*) FROM readings WHERE lower(status) IN ('ok','tamper') GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT lower(status) AS st, count(*) FROM readings WHERE lower(status) IN ('ok','tamper') GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT replace(status, ' ', '') AS st, count(*) FROM readings WHERE replace(status, ' ', '') IN ('ok','tamper') GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT CASE WHEN replace(status, ' ', '') = 'ok' THEN 'ok' ELSE 'x' END AS st, count(*) FROM readings GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT split_part(status, ' ', 1) AS st, count(*) FROM readings WHERE split_part(status, ' ', 1) IN ('OK', 'LOW') GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT left(status, 2) AS st, count(*) FROM readings WHERE left(status, 2) IN ('OK', 'LO') GROUP BY 1 HAVING count(*) > 1000
--> planned
SELECT trim(status) AS st, count(*) FROM readings WHERE trim(status) = ANY (ARRAY['OK', 'LO']) GROUP BY 1 HAVING count(*) > 1000
--> KH202
SELECT lower(trim(status)), count(*) FROM readings WHERE trim(lower(status)) = 'ok' OR trim(lower(status)) = 'tamper' GROUP BY 1 HAVING count(*) > 1000
--> KH202
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT lower(trim(status))) >= 4
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT date_trunc('hour', read_at)) >= 4000
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT extract(hour from read_at)) >= 24 AND sum(kwh) > 1000
--> planned
SELECT m.region FROM readings r JOIN meters m USING (meter_id) GROUP BY 1 HAVING count(DISTINCT round(r.price)) >= 40
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT CASE WHEN estimated THEN read_at::date END) >= 150
--> planned
SELECT read_at::date AS d FROM readings WHERE read_at < '2024-02-01' GROUP BY 1 HAVING count(DISTINCT extract(hour from read_at)) >= 24
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT price / 2.5) >= 3000
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT price / 3) >= 3000
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT price * 2 + 1) >= 3000
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT price / nullif(meter_id, 0)) >= 3000
--> KH209
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT meter_id % 100) >= 80
--> planned
SELECT tariff FROM readings GROUP BY tariff HAVING count(DISTINCT meter_id / 100) >= 40
--> KH209
SELECT estimated, status IS NULL AS n FROM readings GROUP BY 1, 2 HAVING count(DISTINCT coalesce(status, tariff)) >= 4
--> planned
SELECT floor(price / 10) AS p FROM readings GROUP BY 1 HAVING count(DISTINCT extract(month FROM read_at)) >= 6
--> planned
SELECT count(DISTINCT read_at::date) > 100 AS many, tariff FROM readings GROUP BY 2
--> planned
SELECT tariff FROM readings GROUP BY tariff ORDER BY count(DISTINCT date_trunc('hour', read_at)) DESC LIMIT 2
--> planned
