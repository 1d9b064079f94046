-- # How it is written: quoting, aliases, positions, parentheses, casts, dates, NULL, comments, formulas, keys.
-- # Names.
select WARD from VISITS group by Ward having COUNT(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT "ward" FROM "visits" GROUP BY "ward" HAVING COUNT(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT "Ward" FROM visits GROUP BY "Ward" HAVING count(*) > 40
--> KH201 "Ward"
SELECT "public"."visits"."ward" AS "ward" FROM "public"."visits" GROUP BY "public"."visits"."ward" HAVING COUNT(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT v.ward FROM retail.public.visits AS v GROUP BY v.ward HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT v.ward FROM visits v GROUP BY ward HAVING avg(v.age) > 65
--> [ward 3] f0 > 0 ~325; avg(age) - 65 1x-65 delta 65
SELECT visits.ward FROM visits v GROUP BY visits.ward HAVING count(*) > 40
--> KH201 visits.ward
SELECT ward AS "The ward", 'x' AS tag, 5 FROM visits GROUP BY ward HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward w FROM visits GROUP BY w HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY 1 HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT day, ward FROM visits GROUP BY 2, 1 HAVING count(*) > 40
--> [ward 3, day 10] f0 > 40 ~4; count(*) delta 1
SELECT ward, ward FROM visits GROUP BY 1 HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT DISTINCT ward FROM visits GROUP BY ward HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward, day HAVING count(*) > 40
--> [ward 3, day 10] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY (ward) HAVING (count(*)) > (40)
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward, ward HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY DISTINCT ward HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ALL HAVING count(*) > 40
--> KH106 ward
SELECT ward FROM other.visits GROUP BY ward HAVING count(*) > 40
--> passed on
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40;
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT /* "40" */ ward -- the ward
FROM visits /* public.visits */ GROUP BY ward
HAVING count(*) > /* nested /* comment */ */ 40 -- end
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 ORDER BY ward DESC NULLS LAST LIMIT 10 OFFSET 1
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 FETCH FIRST 5 ROWS ONLY
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 ORDER BY count(*) DESC
--> [ward 3] f0 > 40 ~4 all falling ~8 priced; count(*) delta 1; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 ORDER BY 1
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING n > 40
--> KH201 n
SELECT ward || '!' FROM visits GROUP BY ward HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT upper(ward) AS ward FROM visits GROUP BY ward HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 AND ward = 'A'
--> [ward 1] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING ward IN ('A', 'B') AND count(*) > 40
--> [ward 2] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING NOT ward = 'A' AND count(*) > 40
--> [ward 2] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING ward = 'A' OR count(*) > 40
--> KH207 ward
SELECT ward FROM visits GROUP BY ward HAVING insured AND count(*) > 40
--> KH207 insured
SELECT nothing FROM visits GROUP BY nothing HAVING count(*) > 40
--> KH201 nothing
SELECT disease FROM visits GROUP BY disease HAVING count(*) > 40
--> KH202 disease
SELECT disease || 'x' FROM visits GROUP BY disease || 'x' HAVING count(*) > 40
--> KH202 disease
SELECT CASE WHEN age > 65 THEN 'old' ELSE 'young' END AS c FROM visits GROUP BY 1 HAVING count(*) > 40
--> [CASE WHEN age > 65 THEN 'old' ELSE 'young' END 2] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE ward = 'nowhere' GROUP BY ward HAVING count(*) > 40
--> [ward 0] f0 > 40 ~4; count(*) delta 1
-- # Derived keys.
SELECT arrived::date AS d FROM visits GROUP BY d HAVING count(*) > 40
--> [day 10] f0 > 40 ~4; count(*) delta 1
SELECT CAST(arrived AS date) FROM visits GROUP BY 1 HAVING count(*) > 40
--> [day 10] f0 > 40 ~4; count(*) delta 1
SELECT date(arrived) FROM visits GROUP BY date(arrived) HAVING count(*) > 40
--> [day 10] f0 > 40 ~4; count(*) delta 1
SELECT EXTRACT(HOUR FROM arrived) FROM visits GROUP BY 1 HAVING count(*) > 40
--> [hour 24] f0 > 40 ~4; count(*) delta 1
SELECT date_part('hour', arrived) FROM visits GROUP BY 1 HAVING count(*) > 40
--> [hour 24] f0 > 40 ~4; count(*) delta 1
SELECT date_trunc('month', invoice_date)::date FROM sales GROUP BY 1 HAVING count(*) > 400
--> [month 13] f0 > 400 ~40; count(*) delta 100 in 0..100
SELECT DATE_TRUNC('MONTH', "public"."sales"."invoice_date") AS "invoice_date" FROM "public"."sales" GROUP BY DATE_TRUNC('MONTH', "public"."sales"."invoice_date") HAVING COUNT(*) > 400
--> [month 13] f0 > 400 ~40; count(*) delta 100 in 0..100
SELECT date_trunc('day', arrived) FROM visits GROUP BY 1 HAVING count(*) > 40
--> [day 10] f0 > 40 ~4; count(*) delta 1
SELECT extract(dow FROM arrived) FROM visits GROUP BY 1 HAVING count(*) > 40
--> [EXTRACT(DOW FROM CAST(day AS TIMESTAMP)) 7] f0 > 40 ~4; count(*) delta 1
SELECT to_char(arrived, 'YYYY') FROM visits GROUP BY 1 HAVING count(*) > 40
--> [to_char(CAST(day AS TIMESTAMP), 'YYYY') 1] f0 > 40 ~4; count(*) delta 1
-- # Thresholds.
SELECT ward FROM visits GROUP BY ward HAVING 40 < count(*)
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > '40'
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40::bigint
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > CAST('40' AS integer)
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*)::int > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*)::numeric > 40.5
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 4e1
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 8 * 5
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 81 / 2
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 81 / 2.0
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > -(-40)
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING NOT count(*) <= 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING NOT (NOT (count(*) > 40))
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) + 5 > 45
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING 2 * (count(*) - 10) > 60
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) = 40
--> [ward 3] (f0 > 39 ~4 and f0 <= 40 ~4); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) != 40
--> [ward 3] (f0 > 40 ~4 or f0 <= 39 ~4); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) BETWEEN 40 AND 60
--> [ward 3] (f0 > 39 ~4 and f0 <= 60 ~6); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) NOT BETWEEN 40 AND 60
--> [ward 3] (f0 <= 39 ~4 or f0 > 60 ~6); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) BETWEEN 60 AND 40
--> [ward 3] (f0 > 59 ~6 and f0 <= 40 ~4); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) BETWEEN SYMMETRIC 60 AND 40
--> KH207 count(*)
SELECT ward FROM visits GROUP BY ward HAVING count(*) IN (40, 60)
--> [ward 3] ((f0 > 39 ~4 and f0 <= 40 ~4) or (f0 > 59 ~6 and f0 <= 60 ~6)); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) NOT IN (40, 60)
--> [ward 3] ((f0 > 40 ~4 or f0 <= 39 ~4) and (f0 > 60 ~6 or f0 <= 59 ~6)); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) IN (40, NULL)
--> [ward 3] (f0 > 39 ~4 and f0 <= 40 ~4); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) NOT IN (40, NULL)
--> [ward 3] false;
SELECT ward FROM visits GROUP BY ward HAVING count(*) > ANY (ARRAY[40, 60])
--> KH208 40,
SELECT ward FROM visits GROUP BY ward HAVING count(*) > ALL (VALUES (40), (60))
--> KH208 ALL
SELECT ward FROM visits GROUP BY ward HAVING count(*) IS NOT NULL
--> [ward 3] true;
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 40) IS NOT NULL
--> [ward 3] true;
SELECT ward FROM visits GROUP BY ward HAVING count(*) IS DISTINCT FROM 40
--> [ward 3] (f0 <= 39 ~4 or f0 > 40 ~4); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > NULL
--> [ward 3] false;
SELECT ward FROM visits GROUP BY ward HAVING NOT (count(*) > NULL)
--> [ward 3] false;
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 OR NULL
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > true
--> KH208 count(*)
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 'many'
--> KH212 'many'
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1e40
--> KH208 count(*)
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 9223372036854775807
--> KH208 count(*)
SELECT ward FROM visits GROUP BY ward HAVING sum(cost) > 1e-9
--> [ward 3] f0 > 0 ~0; sum(cost) delta 10000
SELECT ward FROM visits GROUP BY ward HAVING count(*) > now()
--> KH208 now()
SELECT ward FROM visits GROUP BY ward HAVING count(*) > age
--> KH208 age
SELECT ward FROM visits GROUP BY ward HAVING count(*) > random()
--> KH208 random()
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 0
--> KH304 count(*)
SELECT ward FROM visits GROUP BY ward HAVING count(*) >= 1
--> [ward 3] f0 > 0 ~0; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) < 0
--> [ward 3] false;
SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 0
--> KH304 sum(age)
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 40) IS TRUE
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 40) IS NOT FALSE
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 40) = true
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING CASE WHEN count(*) > 40 THEN true ELSE false END
--> KH207 count(*)
SELECT ward FROM visits GROUP BY ward HAVING true
--> [ward 3] true;
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 AND true AND 1 < 2 AND NOT false
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*)
--> KH207 count(*)
SELECT ward FROM visits GROUP BY ward HAVING 'true'
--> KH207 'true'
-- # Formulas.
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 AND sum(age) > 4000
--> [ward 3] (f0 > 40 ~4 and f1 > 4000 ~400); count(*) delta 1; sum(age) delta 110
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 OR sum(age) > 4000
--> [ward 3] (f0 > 40 ~4 or f1 > 4000 ~400); count(*) delta 1; sum(age) delta 110
SELECT ward FROM visits GROUP BY ward HAVING ((count(*) > 40) AND (sum(age) > 4000)) OR ((avg(age) > 65))
--> [ward 3] ((f0 > 40 ~4 and f1 > 4000 ~400) or f2 > 0 ~325); count(*) delta 1; sum(age) delta 110; avg(age) - 65 1x-65 delta 65
SELECT ward FROM visits GROUP BY ward HAVING NOT (count(*) > 40 AND count(*) FILTER (WHERE insured) > 20)
--> [ward 3] (f0 <= 40 ~4 or f1 <= 20 ~2); count(*) delta 1; count(*) FILTER (WHERE insured) delta 1
SELECT ward FROM visits GROUP BY ward HAVING NOT (count(*) <= 40 OR NOT sum(age) > 4000)
--> [ward 3] (f0 > 40 ~4 and f1 > 4000 ~400); count(*) delta 1; sum(age) delta 110
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 AND count(*) > 60
--> [ward 3] (f0 > 40 ~4 and f0 > 60 ~6); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 60 AND count(*) < 40
--> [ward 3] (f0 > 60 ~6 and f0 <= 39 ~4); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 OR count(*) <= 40
--> [ward 3] (f0 > 40 ~4 or f0 <= 40 ~4); count(*) delta 1
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 40 AND avg(age) > 65) OR (count(*) > 80 AND avg(age) > 60)
--> [ward 3] ((f0 > 40 ~4 and f1 > 0 ~325) or (f0 > 80 ~8 and f2 > 0 ~300)); count(*) delta 1; avg(age) - 65 1x-65 delta 65; avg(age) - 60 1x-60 delta 60
SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 40, sum(age) > 5) = (true, true)
--> KH204 count(*)
SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 XOR count(age) > 40
--> KH100 XOR
-- # Rows.
SELECT ward FROM visits WHERE age > 65 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "age" > 65 f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE age >= 65.5 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "age" > 65 f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE 65 < age AND NOT insured GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("age" > 65 AND "insured" = false) f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE insured = true GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "insured" = true f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE insured IS TRUE GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "insured" = true f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE insured IS NOT FALSE GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("insured" = true OR "insured" IS NULL) f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE insured = 't' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "insured" = true f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease = 'it''s' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "disease" = 'it''s' f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease = E'it\'s' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "disease" = 'it''s' f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease IN ('flu', 'cold', 'flu') GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "disease" IN ('cold', 'flu') f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease NOT IN ('flu', NULL) GROUP BY ward HAVING count(*) > 40
--> [ward 0] where false f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease = ANY (ARRAY['flu', 'cold']) GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "disease" IN ('cold', 'flu') f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease IS NULL GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "disease" IS NULL f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease = NULL GROUP BY ward HAVING count(*) > 40
--> [ward 0] where false f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease IS DISTINCT FROM 'flu' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("disease" <> 'flu' OR "disease" IS NULL) f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease NOT LIKE 'f%' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where NOT ("disease" LIKE 'f%') f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE lower(disease) = 'flu' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "disease" IN ('FLU', 'FLu', 'FlU', 'Flu', 'fLU', 'fLu', 'flU', 'flu') f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE disease || 'x' = 'flux' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "(disease || 'x')" = 'flux' f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE age BETWEEN 18 AND 65 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("age" <= 65 AND "age" >= 18) f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE age NOT BETWEEN 18 AND 65 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("age" < 18 OR "age" > 65) f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE age % 2 = 0 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "remainder(age, 2)" = 0 f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE cost > 99.99::numeric(10, 2) GROUP BY ward HAVING count(*) > 40
--> KH212 99.99::numeric(10,
SELECT ward FROM visits WHERE height > 1.8 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "height" > 1.8 f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE visit_id > 9999999999 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "visit_id" > 9999999999 f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE age > 99999999999 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "age" > 99999999999 f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE true GROUP BY ward HAVING count(*) > 40
--> [ward 3] f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE 1 = 0 GROUP BY ward HAVING count(*) > 40
--> [ward 0] where false f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE ward = 'A' AND insured GROUP BY ward HAVING count(*) > 40
--> [ward 1] where "insured" = true f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE ward = 'A' OR insured GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("insured" = true OR "ward" = 'A') f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE day = '2026-01-05' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "day" = date '2026-01-05' f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE arrived >= '2026-01-05' AND arrived < '2026-01-06' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("arrived" < timestamp '2026-01-06 00:00:00' AND "arrived" >= timestamp '2026-01-05 00:00:00') f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE arrived BETWEEN timestamp '2026-01-05 08:00' AND timestamp '2026-01-05 12:00:00.5' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("arrived" <= timestamp '2026-01-05 12:00:00.500000' AND "arrived" >= timestamp '2026-01-05 08:00:00') f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE arrived > timestamp '2026-01-05' - interval '36 hours' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "arrived" > timestamp '2026-01-03 12:00:00' f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE arrived > date '2026-01-31' + interval '1 month' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "arrived" > timestamp '2026-02-28 00:00:00' f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE arrived >= date_trunc('month', current_date) GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "arrived" >= timestamp '2011-06-01 00:00:00' f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE arrived::date = current_date GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "day" = date '2011-06-15' f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE extract(hour FROM arrived) BETWEEN 8 AND 17 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("hour" <= 17 AND "hour" >= 8) f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE date_trunc('month', arrived) = '2026-01-01' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where ("arrived" < timestamp '2026-02-01 00:00:00' AND "arrived" >= timestamp '2026-01-01 00:00:00') f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE arrived + interval '1 day' > '2026-01-05' GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "arrived" > timestamp '2026-01-04 00:00:00' f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE arrived > '2026-13-05' GROUP BY ward HAVING count(*) > 40
--> KH212 '2026-13-05'
SELECT ward FROM visits WHERE reference = 'not-a-uuid' GROUP BY ward HAVING count(*) > 40
--> KH212 'not-a-uuid'
SELECT ward FROM visits WHERE (ward, insured) = ('A', true) GROUP BY ward HAVING count(*) > 40
--> [ward 1] where "insured" = true f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE coalesce(age, 0) > 65 GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "age" > 65 f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE age > cost GROUP BY ward HAVING count(*) > 40
--> [ward 3] where "(cost(28,10) < (age * 10000000000))" = true f0 > 40 ~4; count(*) delta 1
SELECT ward FROM visits WHERE age IN (SELECT 5) GROUP BY ward HAVING count(*) > 40
--> KH107 5)
SELECT ward FROM visits WHERE EXISTS (SELECT 1) GROUP BY ward HAVING count(*) > 40
--> KH107 1)
