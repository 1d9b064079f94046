-- # What dashboards of BI tools send around questions: free once the question itself has been answered.
-- # Superset: charts, tables and filters over a dataset that is a stored question, and over one that is SQL.
SELECT store AS store, COUNT(*) AS count FROM public.busy GROUP BY store ORDER BY count DESC, store LIMIT 1000
--> north | 1; south | 1
SELECT store AS store FROM public.busy GROUP BY store ORDER BY store LIMIT 1000
--> north; south
SELECT store AS store FROM public.busy WHERE store IN ('north', 'nowhere') LIMIT 1000
--> north
SELECT COUNT(DISTINCT store) AS "COUNT_DISTINCT(store)" FROM public.busy LIMIT 50000
--> 2
SELECT store AS store, COUNT(*) AS count FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) AS virtual_table GROUP BY store ORDER BY store LIMIT 1000
--> north | 1; south | 1
SELECT month AS month, COUNT(*) AS count FROM (SELECT store, month FROM sales GROUP BY store, month HAVING count(*) > 1000) AS virtual_table WHERE month >= TO_DATE('2026-02-01', 'YYYY-MM-DD') AND month < TO_DATE('2026-03-01', 'YYYY-MM-DD') GROUP BY month LIMIT 10000
--> 2026-02-01 | 1
SELECT DATE_TRUNC('month', month) AS month, store AS store, COUNT(*) AS count FROM (SELECT store, month FROM sales GROUP BY store, month HAVING count(*) > 1000) AS virtual_table GROUP BY DATE_TRUNC('month', month), store ORDER BY 1, 2 LIMIT 10000
--> 2026-01-01 00:00:00+00:00 | north | 1; 2026-02-01 00:00:00+00:00 | south | 1
SELECT region AS region, COUNT(*) AS count FROM (SELECT b.store, s.region FROM busy b JOIN stores s ON s.name = b.store) AS virtual_table GROUP BY region ORDER BY region LIMIT 1000
--> lower | 1; upper | 1
-- # Metabase: a question on a stored question, one on a saved SQL question, their filters, a join with a public table.
SELECT "public"."busy"."store" AS "store", COUNT(*) AS "count" FROM "public"."busy" GROUP BY "public"."busy"."store" ORDER BY "public"."busy"."store" ASC
--> north | 1; south | 1
SELECT "public"."busy"."store" AS "store" FROM "public"."busy" WHERE "public"."busy"."store" = 'north' LIMIT 2000
--> north
SELECT TRUE AS "_" FROM "public"."busy" WHERE 1 <> 1 LIMIT 0
--> (no rows)
SELECT "public"."busy"."store" AS "store" FROM "public"."busy" GROUP BY "public"."busy"."store" ORDER BY "public"."busy"."store" ASC LIMIT 1000
--> north; south
SELECT "source"."store" AS "store" FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) AS "source" ORDER BY "source"."store" ASC LIMIT 1048575
--> north; south
SELECT COUNT(*) AS "count" FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) AS "source" WHERE (LOWER("source"."store") LIKE '%nor%')
--> 1
SELECT "Stores"."region" AS "Stores__region", COUNT(*) AS "count" FROM "public"."busy" LEFT JOIN "public"."stores" AS "Stores" ON "public"."busy"."store" = "Stores"."name" GROUP BY "Stores"."region" ORDER BY "Stores"."region" ASC
--> lower | 1; upper | 1
SELECT CAST(DATE_TRUNC('quarter', "source"."month") AS date) AS "month", COUNT(*) AS "count" FROM (SELECT store, month FROM sales GROUP BY store, month HAVING count(*) > 1000) AS "source" GROUP BY CAST(DATE_TRUNC('quarter', "source"."month") AS date) ORDER BY 1 ASC
--> 2026-01-01 | 2
-- # Grafana: $__timeFilter, $__timeGroup, $__timeFrom and $__timeTo, variables, written out as Grafana sends them.
SELECT month AS "time", count(*) AS value FROM (SELECT store, month FROM sales GROUP BY store, month HAVING count(*) > 1000) q WHERE month BETWEEN '2026-01-01T00:00:00Z' AND '2026-03-31T23:59:59Z' GROUP BY 1 ORDER BY 1
--> 2026-01-01 | 1; 2026-02-01 | 1
SELECT floor(extract(epoch from month)/2592000)*2592000 AS "time", store AS metric, 1 AS value FROM (SELECT store, month FROM sales GROUP BY store, month HAVING count(*) > 1000) q ORDER BY 1, 2
--> 1765152000 | north | 1; 1767744000 | south | 1
SELECT store FROM sales WHERE day >= '2026-01-01T00:00:00Z'::date AND day <= '2026-02-28T00:00:00Z'::date GROUP BY store HAVING count(*) > 1000 ORDER BY 1
--> north; south
SELECT store FROM sales WHERE day BETWEEN '2026-01-01T00:00:00Z' AND '2026-02-28T00:00:00Z' GROUP BY store HAVING count(*) > 1000 ORDER BY 1
--> north; south
SELECT name, (name IN (SELECT store FROM busy))::int AS busy FROM stores WHERE name IN ('north', 'west') ORDER BY 1
--> north | 1; west | 0
-- # Tableau: a sheet on a stored question, one on custom SQL, a quick filter, a date part.
SELECT "busy"."store" AS "store", SUM(1) AS "cnt:busy:ok" FROM "public"."busy" "busy" GROUP BY 1 HAVING (COUNT(1) > 0) ORDER BY 1 ASC
--> north | 1; south | 1
SELECT "Custom SQL Query"."store" AS "store" FROM ( SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 ) "Custom SQL Query" GROUP BY 1 ORDER BY "store" ASC NULLS FIRST
--> north; south
SELECT COUNT(DISTINCT "Custom SQL Query"."store") AS "ctd:store:ok" FROM ( SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 ) "Custom SQL Query" HAVING (COUNT(1) > 0)
--> 2
SELECT SUM(1) AS "cnt:TEMP(row count):qk" FROM "public"."busy" "busy" HAVING (COUNT(1) > 0)
--> 2
SELECT * FROM "public"."busy" WHERE 1=0
--> (no rows)
SELECT * FROM "public"."busy" "busy" LIMIT 0
--> (no rows)
SELECT CAST(EXTRACT(MONTH FROM "Custom SQL Query"."month") AS INTEGER) AS "mn:month:ok", COUNT("Custom SQL Query"."store") AS "cnt:store:ok" FROM ( SELECT store, month FROM sales GROUP BY store, month HAVING count(*) > 1000 ) "Custom SQL Query" WHERE (("Custom SQL Query"."month" >= (DATE '2026-01-01')) AND ("Custom SQL Query"."month" <= (DATE '2026-12-31'))) GROUP BY 1 ORDER BY 1
--> 1 | 1; 2 | 1
BEGIN; DECLARE "SQL_CUR2" CURSOR FOR SELECT "busy"."store" AS "store" FROM "public"."busy" "busy" ORDER BY 1; FETCH 10000 IN "SQL_CUR2"; CLOSE "SQL_CUR2"; COMMIT
--> north; south
-- # Power BI: import, preview and DirectQuery on a stored question, and on SQL of one's own.
select "$Table"."store" as "store" from "public"."busy" "$Table" limit 1001
--> north; south
select "_"."store" from (select "_"."store" from "public"."busy" "_" where "_"."store" = 'north') "_" limit 1000001
--> north
select "rows"."store" as "store", count(1) as "a0" from (select "store" from "public"."busy" "$Table") "rows" group by "store" order by "store" limit 1001
--> north | 1; south | 1
select "_"."store", "_"."a0" from (select "rows"."store" as "store", count("rows"."store") as "a0" from (select "_"."store" from (select store from sales group by store having count(*) > 1000) "_" where ("_"."store" in ('north', 'south'))) "rows" group by "store") "_" where not "_"."a0" is null order by "_"."store" limit 1000001
--> north | 1; south | 1
select "$Outer"."store", "$Inner"."region" from (select "_"."store" from "public"."busy" "_") "$Outer" left outer join (select "$Table"."name" as "name2", "$Table"."region" as "region" from "public"."stores" "$Table") "$Inner" on ("$Outer"."store" = "$Inner"."name2" or "$Outer"."store" is null and "$Inner"."name2" is null) order by 1 limit 1000001
--> north | upper; south | lower
-- # DBeaver: the data tab of a stored question, its row count, a filter and an order of the grid.
SELECT x.* FROM public.busy x ORDER BY x.store LIMIT 200
--> north; south
SELECT count(*) FROM public.busy
--> 2
SELECT x.* FROM public.busy x WHERE x.store = 'north' ORDER BY x.store DESC LIMIT 200
--> north
SELECT count(*) FROM ( SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 ) dbvrcnt
--> 2
