-- # Statements around questions as BI tools write them, over the shop of tests/end_to_end: the rows, or the code.
SELECT * FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) "source" LIMIT 1001
--> north; south
SELECT "source"."store" AS "store" FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) "source" ORDER BY "source"."store" DESC LIMIT 2000
--> south; north
SELECT "source"."store" AS "store", count(*) AS "count" FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) "source" GROUP BY "source"."store" ORDER BY "source"."store" ASC
--> north | 1; south | 1
SELECT count(*) AS "count" FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) AS "source"
--> 2
SELECT COUNT(1) AS "COUNT(*)" FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) AS virtual_table WHERE store IN ('north', 'west')
--> 1
SELECT TOP.store FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) TOP WHERE TOP.store LIKE 'n%'
--> north
SELECT "t0"."store" AS "none:store:nk" FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) "t0" GROUP BY 1
--> north; south
SELECT * FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t LIMIT 0
--> (no rows)
SELECT * FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t WHERE 1 = 0
--> (no rows)
SELECT * FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t WHERE (0 = 1) LIMIT 10
--> (no rows)
SELECT $1::text AS label, store FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t WHERE store > $2
--$ ["x", "o"]
--> x | south
SELECT store FROM sales WHERE quantity < $1 GROUP BY store HAVING count(*) > $2 ORDER BY store LIMIT $3 OFFSET $4
--$ [7, 1000, 1, 1]
--> south
SELECT * FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > $1) t WHERE store <> $2
--$ [1000, "south"]
--> north
SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 ORDER BY 1 DESC
--> south; north
SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 ORDER BY store FETCH FIRST ROW ONLY
--> north
(SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) ORDER BY 1 LIMIT 1
--> north
SELECT DISTINCT store FROM sales GROUP BY store HAVING count(*) > 1000 ORDER BY store
--> north; south
SELECT store AS s FROM sales GROUP BY s HAVING count(*) > 1000 ORDER BY s DESC
--> south; north
SELECT 1, store FROM sales GROUP BY 2 HAVING count(*) > 1000 ORDER BY 2
--> 1 | north; 1 | south
SELECT store, month FROM sales GROUP BY 1, 2 HAVING count(*) > 1000 ORDER BY 1
--> north | 2026-01-01; south | 2026-02-01
SELECT upper(store), 'x' || store FROM sales GROUP BY store HAVING count(*) > 1000 ORDER BY 1
--> NORTH | xnorth; SOUTH | xsouth
SELECT r.region FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t JOIN stores r ON r.name = t.store ORDER BY 1
--> lower; upper
SELECT r.name, t.store FROM stores r LEFT JOIN (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t ON r.name = t.store ORDER BY 1
--> closed | NULL; east | NULL; north | north; south | south; west | NULL
SELECT region, count(store) FROM stores LEFT JOIN (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t ON name = store GROUP BY region ORDER BY 1 NULLS LAST
--> lower | 1; upper | 1; NULL | 0
SELECT name FROM stores WHERE name IN (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) ORDER BY 1
--> north; south
SELECT name FROM stores WHERE name NOT IN (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) ORDER BY 1
--> closed; east; west
SELECT name FROM stores WHERE name = ANY (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) ORDER BY 1
--> north; south
SELECT name FROM stores WHERE EXISTS (SELECT 1 FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t WHERE t.store = name) ORDER BY 1
--> north; south
SELECT name FROM stores s WHERE NOT EXISTS (SELECT 1 FROM sales WHERE store = s.name GROUP BY store HAVING count(*) > 1000) ORDER BY 1
--> closed; east; west
SELECT name FROM stores s WHERE EXISTS (SELECT 1 FROM sales x WHERE x.store = s.name HAVING count(*) > 1000) ORDER BY 1
--> north; south
SELECT EXISTS (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000), NOT EXISTS (SELECT store FROM sales GROUP BY store HAVING count(*) > 100000)
--> true | true
SELECT (SELECT count(*) FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t) AS busy, (SELECT count(*) FROM stores) AS everything
--> 2 | 5
SELECT (SELECT max(store) FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t)
--> south
SELECT ARRAY(SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 ORDER BY store)
--> {north,south}
SELECT string_agg(store, ',' ORDER BY store DESC) FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t
--> south,north
SELECT name, l.store FROM stores, LATERAL (SELECT t.store FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t WHERE t.store <> name) l WHERE region = 'upper' ORDER BY 1, 2
--> closed | north; closed | south; north | south
SELECT name, row_number() OVER (ORDER BY name) FROM stores JOIN (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t ON t.store = name ORDER BY 1
--> north | 1; south | 2
WITH q AS (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) SELECT * FROM q ORDER BY 1
--> north; south
WITH q AS MATERIALIZED (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000), r AS (SELECT name FROM stores) SELECT name FROM r WHERE name NOT IN (SELECT store FROM q) ORDER BY 1
--> closed; east; west
WITH q (place) AS (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) SELECT a.place, b.place FROM q a CROSS JOIN q b ORDER BY 1, 2
--> north | north; north | south; south | north; south | south
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 2) SELECT i, store FROM n, (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t ORDER BY 1, 2
--> 1 | north; 1 | south; 2 | north; 2 | south
SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 UNION ALL SELECT name FROM stores WHERE region IS NULL ORDER BY 1
--> east; north; south
SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 UNION SELECT 'north' ORDER BY 1
--> north; south
SELECT name FROM stores EXCEPT (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) ORDER BY 1
--> closed; east; west
SELECT name FROM stores INTERSECT SELECT store FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t ORDER BY 1
--> north; south
SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 INTERSECT SELECT store FROM sales WHERE quantity > 2 GROUP BY store HAVING count(*) > 1500 ORDER BY store
--> north; south
SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 EXCEPT SELECT store FROM sales WHERE month = '2026-01-01' GROUP BY store HAVING count(*) > 1000
--> south
SELECT store FROM sales WHERE month = '2026-01-01' GROUP BY store HAVING count(*) > 1000 UNION SELECT store FROM sales WHERE month = '2026-02-01' GROUP BY store HAVING count(*) > 1000 ORDER BY 1
--> north; south
SELECT * FROM ((SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) EXCEPT (SELECT store FROM sales WHERE month = '2026-02-01' GROUP BY store HAVING count(*) > 1000)) "source" LIMIT 1001
--> north
SELECT count(*) FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 UNION ALL SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t
--> 4
SELECT a.store, b.ward FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) a, (SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > 300) b ORDER BY 1, 2
--> north | A; north | B; south | A; south | B
SELECT 'store' AS kind, store AS name FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) s UNION ALL SELECT 'ward', ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > 300 ORDER BY 1, 2
--> store | north; store | south; ward | A; ward | B
SELECT * FROM busy ORDER BY store
--> north; south
SELECT "public"."busy"."store" AS "store" FROM "public"."busy" ORDER BY 1 LIMIT 1048575
--> north; south
TABLE busy ORDER BY 1
--> north; south
SELECT b.store, s.region FROM busy b JOIN stores s ON s.name = b.store ORDER BY 1
--> north | upper; south | lower
SELECT * FROM selling ORDER BY 1
--> north; south
SELECT count(*) FROM busy JOIN selling USING (store)
--> 2
VALUES ((SELECT min(store) FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t), (SELECT max(store) FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t))
--> north | south
SELECT CASE WHEN 'north' IN (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) THEN 'busy' ELSE 'calm' END
--> busy
SELECT * FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t TABLESAMPLE SYSTEM (10)
--> 42601
SELECT t.* FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) AS t (place) WHERE t.place >= 'o'
--> south
SELECT * FROM generate_series(1, 2) g, (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t ORDER BY 1, 2
--> 1 | north; 1 | south; 2 | north; 2 | south
SELECT json_agg(t ORDER BY store) FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t
--> {{"store": "north"},{"store": "south"}}
SELECT /* dashboard 12 */ store -- the key
FROM sales GROUP BY store HAVING count(*) > 1000 /* ; */ ORDER BY 1
--> north; south
BEGIN; DECLARE c CURSOR FOR SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 ORDER BY 1; FETCH 1 FROM c; FETCH ALL FROM c; COMMIT
--> north // south
BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT name FROM stores WHERE name IN (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) ORDER BY 1; COMMIT; FETCH LAST FROM c; CLOSE c
--> south
SET keyhole.param.selling.threshold = 3500; SELECT * FROM selling; RESET keyhole.param.selling.threshold
--> north
SELECT name, setting FROM keyhole.settings WHERE name LIKE 'keyhole.param.%' ORDER BY 1
--> keyhole.param.reached.goal | 137; keyhole.param.selling.least | 0; keyhole.param.selling.threshold | 1000
SELECT * FROM sales LIMIT 10
--> KH103
SELECT "source"."amount" FROM (SELECT * FROM sales) "source" LIMIT 1001
--> KH103
SELECT count(*) FROM sales
--> KH101
SELECT store, sum(amount) FROM sales GROUP BY store
--> KH101
SELECT * FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t WHERE store IN (SELECT note FROM sales)
--> KH103
SELECT (SELECT max(amount) FROM sales) FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t
--> KH101
SELECT * FROM stores WHERE EXISTS (SELECT FROM sales WHERE sales.store = name)
--> KH103
SELECT * FROM stores, LATERAL (SELECT store FROM sales WHERE store = name GROUP BY store HAVING count(*) > 1000) l
--> KH201
WITH sales AS (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) SELECT * FROM sales
--> KH106
WITH q AS (SELECT DISTINCT * FROM sales) SELECT store FROM q GROUP BY store HAVING count(*) > 1000
--> KH103
WITH q AS (SELECT * FROM sales) SELECT store FROM q GROUP BY store HAVING count(*) > 1000 ORDER BY store
--> north; south
SELECT s.place FROM (SELECT store AS place FROM public.sales) s GROUP BY s.place HAVING count(*) > 1000 ORDER BY 1 DESC
--> south; north
SELECT t.store, r.region FROM (SELECT store, count(*) AS n FROM sales GROUP BY 1) t JOIN stores r ON r.name = t.store WHERE n > 1000 AND t.store < 'o'
--> north | upper
WITH t AS (SELECT count(*) AS n, store FROM sales GROUP BY 2) SELECT upper(store) FROM t WHERE n > 1000 ORDER BY 1 DESC
--> SOUTH; NORTH
SELECT store FROM sales GROUP BY GROUPING SETS ((store), ()) HAVING count(*) > 1000
--> north; south; NULL
SELECT store, month FROM sales GROUP BY ROLLUP (store, month) HAVING count(*) > 1000
--> north | 2026-01-01; south | 2026-02-01; north | NULL; south | NULL; NULL | NULL
SELECT DISTINCT store FROM sales GROUP BY ROLLUP (store, month) HAVING count(*) > CASE grouping(store) WHEN 1 THEN 1 ELSE 1000 END ORDER BY store
--> north; south; NULL
SELECT store, count(*) AS n FROM sales GROUP BY store HAVING n > 1000
--> KH201
SELECT store AS s FROM sales GROUP BY store HAVING s = 'north' AND count(*) > 1000
--> KH201
SELECT * FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 FOR UPDATE) t
--> KH106
SELECT query_to_xml('TABLE sales', true, true, '')
--> KH102
SELECT store FROM sales GROUP BY store HAVING count(*) > 1000 UNION SELECT note FROM sales
--> KH103
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > 300 EXCEPT SELECT ward FROM visits WHERE cost > 150 GROUP BY ward HAVING count(*) > 100 ORDER BY 1
--> A; B
SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > 300 INTERSECT SELECT ward FROM visits WHERE cost > 50 GROUP BY ward HAVING count(*) > 750
--> A
SELECT pg_typeof(t.date_trunc)::text FROM (SELECT date_trunc('month', s.day) FROM sales s GROUP BY 1 HAVING count(*) > 1000) t
--> timestamp with time zone; timestamp with time zone

PREPARE p (int) AS SELECT store FROM sales GROUP BY store HAVING count(*) > $1; EXECUTE p(1000); EXECUTE p('3500')
--> north; south // north
PREPARE p AS SELECT count(*) FROM (SELECT store FROM sales WHERE day >= $1 GROUP BY store HAVING count(*) > $2) q; EXECUTE p('2026-02-01', 1000)
--> 1
PREPARE p AS SELECT store FROM sales GROUP BY store HAVING count(*) > 1000; EXPLAIN EXECUTE q
--> 26000
PREPARE p AS SELECT store FROM sales GROUP BY store HAVING count(*) > 1000; DEALLOCATE p; EXECUTE p
--> 26000
PREPARE p AS SELECT store FROM sales GROUP BY store HAVING count(*) > $1; EXECUTE p
--> 42601
SELECT date_trunc('month', day)::date FROM sales GROUP BY 1 HAVING count(*) > 1000 ORDER BY 1
--> 2026-01-01; 2026-02-01
SELECT CAST(date_trunc('month', CAST(s.day AS timestamp)) AS date) AS m FROM sales s GROUP BY CAST(date_trunc('month', CAST(s.day AS timestamp)) AS date) HAVING count('x') > 1000 ORDER BY 1
--> 2026-01-01; 2026-02-01
SELECT d, pg_typeof(d) FROM (SELECT date_trunc('month', day::timestamp) AS d FROM sales GROUP BY date_trunc('month', day::timestamp) HAVING count(*) > 1000) q ORDER BY 1
--> 2026-01-01 00:00:00 | timestamp without time zone; 2026-02-01 00:00:00 | timestamp without time zone
SELECT store FROM sales WHERE note = E'\x6e' GROUP BY store HAVING count(*) > 1000
--> north
SELECT store FROM sales GROUP BY store HAVING (count(*) > 1000) IS NOT FALSE ORDER BY 1
--> north; south
SELECT store FROM sales GROUP BY store HAVING median(amount) > 10 AND count(amount) >= 1000 ORDER BY 1
--> north; south
SELECT median(n) FROM (VALUES (1), (5), (2)) AS t(n)
--> 2.0
SELECT "sales"."store" AS "store", SUM("sales"."amount") AS "sum:amount:ok" FROM "public"."sales" "sales" GROUP BY 1 HAVING ((SUM("sales"."amount") >= 29999.999999999898) AND (SUM("sales"."amount") <= 90000.000000000102))
--> south | NULL
SELECT store FROM sales WHERE store <> 'north' GROUP BY store HAVING count(*) > 0.2 * (SELECT count(*) FROM sales)
--> south
SELECT store FROM sales GROUP BY store HAVING count(*) > 0.2 * (SELECT count(*) FROM sales) AND store IN ('north', 'west')
--> north
