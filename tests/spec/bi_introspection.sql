-- # What BI tools send by themselves: sessions, schema browsers, probes, samples. Nothing of it costs anything.
-- # Outcomes: rows, "some rows", "(no rows)", "ok" for statements without rows, or the refusal's code.
-- # Superset: SQLAlchemy's inspection is in catalog_queries.json; these are its previews and filters.
SELECT store, month, day, amount, quantity, note, score FROM public.sales LIMIT 101
--> KH103
SELECT DISTINCT store AS store FROM public.sales LIMIT 1000
--> some rows
SELECT store AS store FROM public.sales GROUP BY store LIMIT 1000
--> closed; east; north; south; west
SELECT COUNT(*) AS count FROM public.sales LIMIT 50000
--> KH101
SELECT store AS store, COUNT(*) AS count FROM public.sales GROUP BY store ORDER BY count DESC LIMIT 1000
--> KH101
SELECT store AS store, SUM(amount) AS "SUM(amount)" FROM public.sales WHERE day >= TO_DATE('2026-01-01', 'YYYY-MM-DD') AND day < TO_DATE('2026-04-01', 'YYYY-MM-DD') GROUP BY store ORDER BY "SUM(amount)" DESC LIMIT 10000
--> KH101
SELECT MIN(day) AS "MIN(day)", MAX(day) AS "MAX(day)" FROM public.sales
--> KH101
SELECT name, region FROM public.stores LIMIT 101
--> some rows
SELECT DISTINCT region AS region FROM public.stores ORDER BY region LIMIT 1000
--> lower; upper; NULL
EXPLAIN SELECT name, region FROM public.stores
--> some rows
-- # Metabase: session, tables that may be read, fields, samples for filters and fingerprints.
SET SESSION TIMEZONE TO 'UTC'
--> ok
show timezone
--> some rows
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
--> ok
SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)
--> (no rows)
WITH privileges AS (SELECT t.schemaname AS schema, t.objectname AS "table", pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"."' || replace(t.objectname, '"', '""') || '"', 'select') AS "select", pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"."' || replace(t.objectname, '"', '""') || '"', 'insert') AS "insert", pg_catalog.has_table_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"."' || replace(t.objectname, '"', '""') || '"', 'delete') AS "delete" FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables UNION SELECT schemaname, viewname FROM pg_catalog.pg_views UNION SELECT schemaname, matviewname FROM pg_catalog.pg_matviews) t WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema' AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')) SELECT p."table", p."insert", p."delete" FROM privileges p WHERE p."select" ORDER BY 1
--> alerts | false | false; answers | false | false; budget | false | false; budget_details | false | false; busy | false | false; domains | false | false; errors | false | false; monitors | false | false; queries | false | false; reached | false | false; selling | false | false; settings | false | false; status | false | false; stores | false | false
SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS "type", "stat"."n_live_tup" IS NULL AS "estimated" FROM "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid" LEFT JOIN "pg_catalog"."pg_description" AS "d" ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0) AND ("d"."classoid" = 'pg_class'::regclass) LEFT JOIN "pg_stat_user_tables" AS "stat" ON ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname") WHERE ("n"."nspname" !~ '^pg_') AND ("n"."nspname" <> 'information_schema') AND c.relkind in ('r', 'p', 'v', 'f', 'm') AND ("n"."nspname" IN ('public')) ORDER BY "type" ASC, "schema" ASC, "name" ASC
--> public | sales | TABLE | false; public | stores | TABLE | false; public | visits | TABLE | false; public | busy | VIEW | true; public | reached | VIEW | true; public | selling | VIEW | true; public | status | VIEW | true
SELECT "c"."column_name" AS "name", CASE WHEN "c"."udt_schema" IN ('public', 'pg_catalog') THEN FORMAT('%s', "c"."udt_name") ELSE FORMAT('"%s"."%s"', "c"."udt_schema", "c"."udt_name") END AS "database-type", COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST("c"."table_schema" AS TEXT), CAST("c"."table_name" AS TEXT)) AS REGCLASS) AS OID), "c"."ordinal_position") AS "field-comment" FROM "information_schema"."columns" AS "c" WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND "c"."table_name" IN ('visits') ORDER BY "c"."ordinal_position"
--> patient_id | int4 | privacy unit; ward | text | key, public domain of 4 values: A, B, C, D; cost | numeric | measure, clipped to 0..200; total clipped to 0..400 per patient_id; units_band | int4 | band of count(DISTINCT patient_id) in a group, by max(units_band): 0 below 107, 1 from 107, 2 from 307
SELECT TRUE AS "_" FROM "public"."stores" WHERE 1 <> 1 LIMIT 0
--> (no rows)
SELECT TRUE AS "_" FROM "public"."sales" WHERE 1 <> 1 LIMIT 0
--> (no rows)
SELECT TRUE AS "_" FROM "public"."selling" WHERE 1 <> 1 LIMIT 0
--> (no rows)
SELECT TRUE AS "_" FROM "keyhole"."settings" WHERE 1 <> 1 LIMIT 0
--> (no rows)
SELECT "source"."name" AS "name", SUBSTRING("source"."meaning", 1, 1234) AS "meaning" FROM (SELECT "keyhole"."settings"."name" AS "name", "keyhole"."settings"."meaning" AS "meaning" FROM "keyhole"."settings") AS "source" LIMIT 10000
--> some rows
SELECT "keyhole"."errors"."sqlstate" AS "sqlstate" FROM "keyhole"."errors" GROUP BY "keyhole"."errors"."sqlstate" ORDER BY "keyhole"."errors"."sqlstate" ASC LIMIT 1000
--> some rows
SELECT "source"."store" AS "store", SUBSTRING("source"."note", 1, 1234) AS "note" FROM (SELECT "public"."sales"."store" AS "store", "public"."sales"."note" AS "note" FROM "public"."sales") AS "source" LIMIT 10000
--> KH103
SELECT "public"."sales"."note" AS "note" FROM "public"."sales" GROUP BY "public"."sales"."note" ORDER BY "public"."sales"."note" ASC LIMIT 1000
--> KH202
SELECT "public"."stores"."region" AS "region" FROM "public"."stores" GROUP BY "public"."stores"."region" ORDER BY "public"."stores"."region" ASC LIMIT 1000
--> lower; upper; NULL
SELECT COUNT(*) AS "count" FROM "public"."sales"
--> KH101
SELECT COUNT(DISTINCT "public"."sales"."store") AS "count" FROM "public"."sales"
--> KH101
-- # Grafana: the health check, versions, schemas, tables, columns, and what a variable asks.
SELECT 1
--> 1
SELECT current_setting('server_version_num')::int / 100 > 900 AS version
--> true
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'
--> (no rows)
SELECT schema_name AS "name" FROM information_schema.schemata WHERE schema_name NOT IN ('information_schema', 'pg_catalog', 'pg_toast', '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental') ORDER BY schema_name
--> keyhole; public
SELECT CASE WHEN quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1), array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i, string_to_array(current_setting('search_path'), ',') s) THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog') ORDER BY 1
--> busy; keyhole.alerts; keyhole.answers; keyhole.budget; keyhole.budget_details; keyhole.domains; keyhole.errors; keyhole.monitors; keyhole.queries; keyhole.settings; reached; sales; selling; status; stores; visits
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE CASE WHEN array_length(parse_ident('public.visits'), 1) = 2 THEN quote_ident(table_schema) = (parse_ident('public.visits'))[1] AND quote_ident(table_name) = (parse_ident('public.visits'))[2] ELSE quote_ident(table_name) = 'public.visits' END
--> patient_id | integer; ward | text; cost | numeric; units_band | integer
SELECT DISTINCT store FROM sales LIMIT 100
--> some rows
SELECT DISTINCT name AS __text, name AS __value FROM stores ORDER BY 1 LIMIT 100
--> closed | closed; east | east; north | north; south | south; west | west
SELECT day AS "time", count(*) AS value FROM sales WHERE day BETWEEN '2026-01-01T00:00:00Z' AND '2026-04-01T00:00:00Z' GROUP BY 1 ORDER BY 1
--> KH101
SELECT floor(extract(epoch from day) / 86400) * 86400 AS "time", avg(amount) FROM sales GROUP BY 1 ORDER BY 1
--> KH101
-- # Tableau: whether temporary tables can be made, the columns of a table, row counts, the values of a filter.
SET SESSION extra_float_digits = 3
--> ok
BEGIN; DECLARE "SQL_CUR1" CURSOR FOR SELECT 1; FETCH 10000 IN "SQL_CUR1"; CLOSE "SQL_CUR1"; COMMIT
--> 1
CREATE LOCAL TEMPORARY TABLE "#Tableau_3_0C2E_1_Connect_Check" ("COL" INTEGER) ON COMMIT PRESERVE ROWS
--> KH102
DROP TABLE "#Tableau_3_0C2E_1_Connect_Check"
--> KH102
SELECT * INTO TEMPORARY TABLE "#Tableau_3_0C2E_2_Connect_Check" FROM (SELECT 1 AS COL) AS CHECKTEMP LIMIT 1
--> KH102
SELECT "SUBCOL" AS "COL" FROM (SELECT 1 AS "SUBCOL") "SUBQUERY" GROUP BY 1
--> 1
SELECT * FROM "public"."sales"
--> KH103
SELECT * FROM "public"."sales" WHERE 1=0
--> (no rows)
SELECT * FROM "public"."sales" LIMIT 0
--> (no rows)
SELECT * FROM (SELECT store, sum(amount) AS takings FROM sales GROUP BY store) "Custom SQL Query" LIMIT 0
--> (no rows)
BEGIN; DECLARE "SQL_CUR0x1" CURSOR WITH HOLD FOR SELECT * FROM "public"."sales" LIMIT 0; FETCH 10000 IN "SQL_CUR0x1"; CLOSE "SQL_CUR0x1"; COMMIT
--> (no rows)
SELECT 1 AS "one" FROM "public"."sales" HAVING COUNT(1)>0
--> KH304
SELECT "sales"."store" AS "store" FROM "public"."sales" "sales" GROUP BY 1 HAVING (COUNT(1) > 0) LIMIT 0
--> (no rows)
SELECT "selling"."store" AS "store", COUNT(1) FROM "public"."selling" "selling" JOIN "public"."sales" "sales" ON ("selling"."store" = "sales"."store") WHERE (1 = 0) GROUP BY 1
--> (no rows)
EXPLAIN (COSTS OFF) SELECT * FROM "public"."sales" WHERE 1=0
--> Result;   One-Time Filter: (false AND false)
SELECT * FROM "public"."selling" WHERE 1=0
--> (no rows)
SELECT * FROM "public"."selling" "selling" LIMIT 0
--> (no rows)
SELECT * FROM "public"."stores" "stores" LIMIT 0
--> (no rows)
SELECT SUM(1) AS "cnt:sales_0C2E:ok" FROM "public"."sales" "sales" HAVING (COUNT(1) > 0)
--> KH101
SELECT "sales"."store" AS "store" FROM "public"."sales" "sales" GROUP BY 1 ORDER BY "store" ASC NULLS FIRST
--> closed; east; north; south; west
SELECT "sales"."store" AS "store" FROM "public"."sales" "sales" GROUP BY 1 HAVING (COUNT(1) > 0)
--> KH304
SELECT MIN("sales"."amount") AS "TEMP(lower)", MAX("sales"."amount") AS "TEMP(upper)" FROM "public"."sales" "sales" HAVING (COUNT(1) > 0)
--> KH101
SELECT "stores"."region" AS "region", SUM(1) AS "cnt:stores:ok" FROM "public"."stores" "stores" GROUP BY 1 HAVING (COUNT(1) > 0) ORDER BY 1 ASC NULLS FIRST
--> NULL | 1; lower | 2; upper | 2
-- # Power BI: the navigator, keys and relations, previews, row counts, statistics of columns.
select character_set_name from INFORMATION_SCHEMA.character_sets
--> UTF8
select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables where TABLE_SCHEMA not in ('information_schema', 'pg_catalog', 'keyhole') order by TABLE_SCHEMA, TABLE_NAME
--> public | busy | VIEW; public | reached | VIEW; public | sales | BASE TABLE; public | selling | VIEW; public | status | VIEW; public | stores | BASE TABLE; public | visits | BASE TABLE
select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, case when (data_type like '%unsigned%') then DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE from INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'public' and TABLE_NAME = 'busy' order by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
--> store | 1 | YES | text
select i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME as INDEX_NAME, ii.COLUMN_NAME, ii.ORDINAL_POSITION, case when i.CONSTRAINT_TYPE = 'PRIMARY KEY' then 'Y' else 'N' end as PRIMARY_KEY from INFORMATION_SCHEMA.table_constraints i inner join INFORMATION_SCHEMA.key_column_usage ii on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME and i.TABLE_SCHEMA = ii.TABLE_SCHEMA and i.TABLE_NAME = ii.TABLE_NAME where i.TABLE_SCHEMA = 'public' and i.TABLE_NAME = 'sales' and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE') order by 1, 2, 3
--> (no rows)
select pkcol.COLUMN_NAME as PK_COLUMN_NAME, fkcol.TABLE_SCHEMA as FK_TABLE_SCHEMA, fkcol.TABLE_NAME as FK_TABLE_NAME, fkcol.COLUMN_NAME as FK_COLUMN_NAME, fkcol.ORDINAL_POSITION as ORDINAL from (select distinct constraint_catalog, constraint_schema, unique_constraint_schema, constraint_name, unique_constraint_name from INFORMATION_SCHEMA.referential_constraints) fkcon inner join INFORMATION_SCHEMA.key_column_usage fkcol on fkcon.CONSTRAINT_SCHEMA = fkcol.CONSTRAINT_SCHEMA and fkcon.CONSTRAINT_NAME = fkcol.CONSTRAINT_NAME inner join INFORMATION_SCHEMA.key_column_usage pkcol on fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA and fkcon.UNIQUE_CONSTRAINT_NAME = pkcol.CONSTRAINT_NAME where pkcol.TABLE_SCHEMA = 'public' and pkcol.TABLE_NAME = 'sales'
--> (no rows)
SELECT ns.nspname, t.typname, t.oid, t.typtype FROM pg_type AS t JOIN pg_namespace AS ns ON (ns.oid = t.typnamespace) LEFT JOIN pg_class AS cls ON (cls.oid = t.typrelid) WHERE t.typtype IN ('b', 'r', 'm', 'e', 'd') OR (t.typtype = 'c' AND cls.relkind = 'c') ORDER BY t.oid LIMIT 3
--> some rows
DISCARD ALL
--> ok
select "$Table"."store" as "store", "$Table"."amount" as "amount" from "public"."sales" "$Table" limit 1001
--> KH103
select "$Table"."name" as "name", "$Table"."region" as "region" from "public"."stores" "$Table" limit 1001
--> some rows
select count(*) as "C1" from "public"."sales" "$Table"
--> KH101
select "_"."store", "_"."a0" from (select "rows"."store" as "store", sum("rows"."amount") as "a0" from (select "store", "amount" from "public"."sales" "$Table") "rows" group by "store") "_" where not "_"."a0" is null limit 1000001
--> KH101
-- # DBeaver: the session, the navigator's tree, a table's properties, the data tab.
SET extra_float_digits = 3
--> ok
SET application_name = 'DBeaver - Main'
--> ok
SELECT current_schema(), session_user
--> public | ada
SHOW search_path
--> some rows
SELECT db.datname FROM pg_catalog.pg_database db WHERE NOT datistemplate AND datallowconn AND has_database_privilege(db.oid, 'CONNECT') ORDER BY db.datname
--> shop
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass ORDER BY nspname
--> some rows
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, pg_catalog.pg_get_partkeydef(c.oid) as partition_key FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass WHERE c.relnamespace = 'public'::regnamespace AND c.relkind not in ('i', 'I', 'c')
--> some rows
SELECT c.relname, a.attname, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value, dsc.description FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum) LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid) LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid WHERE NOT a.attisdropped AND c.relkind not in ('i', 'I', 'c') AND c.oid = 'public.visits'::regclass AND a.attnum > 0 ORDER BY a.attnum
--> visits | patient_id | NULL | privacy unit; visits | ward | NULL | key, public domain of 4 values: A, B, C, D; visits | cost | NULL | measure, clipped to 0..200; total clipped to 0..400 per patient_id; visits | units_band | NULL | band of count(DISTINCT patient_id) in a group, by max(units_band): 0 below 107, 1 from 107, 2 from 307
SELECT c.oid, c.*, t.relname as tabrelname, rt.relnamespace as refnamespace, d.description FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 WHERE c.conrelid = 'public.sales'::regclass ORDER BY c.oid
--> (no rows)
SELECT i.*, i.indkey as keys, c.relname, tc.relname as tabrelname, pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid WHERE i.indrelid = 'public.sales'::regclass ORDER BY tc.relname, c.relname
--> (no rows)
SELECT pg_catalog.pg_get_viewdef('public.busy'::regclass, true) LIKE '%GROUP BY store%HAVING count(*) > 1000%'
--> true
SELECT tbl.oid, pg_catalog.pg_relation_size(tbl.oid) >= 0, pg_catalog.pg_total_relation_size(tbl.oid) >= 0 FROM pg_catalog.pg_class tbl WHERE tbl.oid = 'public.sales'::regclass
--> some rows
select c.oid, pg_catalog.pg_total_relation_size(c.oid) as total_rel_size, pg_catalog.pg_relation_size(c.oid) as rel_size FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
--> some rows
select * from pg_catalog.pg_settings where name = 'standard_conforming_strings'
--> some rows
SELECT a.oid, a.rolname FROM pg_catalog.pg_roles a WHERE a.rolname = 'ada'
--> some rows
SELECT x.* FROM public.sales x LIMIT 200
--> KH103
SELECT count(*) FROM public.sales
--> KH101
SELECT x.* FROM public.stores x ORDER BY x.name LIMIT 200
--> closed | upper; east | NULL; north | upper; south | lower; west | lower
INSERT INTO public.stores (name, region) VALUES ('new', 'upper')
--> KH102
