-- # Numbers beside the keys under each choice of keyhole.numbers: `mode`, a statement, and what stands in its columns.
-- # "n=null" is not told, "n=at least 501" is proved, "n=bands" has its band; "unsorted" names orders that are not told.

null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 ORDER BY n DESC
--> n=null unsorted n
null SELECT country, count(*) FROM sales GROUP BY country HAVING count(*) > 500 ORDER BY count(*) DESC, country
--> count=null unsorted count
null SELECT country, count(*) n, round(avg(amount), 2) FROM sales GROUP BY 1 HAVING count(*) > 500 ORDER BY 2 DESC
--> n=null round=null unsorted n
null SELECT country, count(*) FROM sales GROUP BY country HAVING count(*) > 500 ORDER BY sum(amount) DESC
--> count=null unsorted sum(amount)
null SELECT country, sum(amount) / count(*) AS mean, CAST(max(quantity) AS text) FROM sales GROUP BY country HAVING count(*) > 500
--> mean=null max=null
null SELECT country || ': ' || count(*) AS label FROM sales GROUP BY country HAVING count(*) > 500
--> label=null
null SELECT country, count(*) AS n, sum(amount) > 20000 AS big FROM sales GROUP BY country
--> n=null
null SELECT count(*) AS n FROM sales HAVING count(*) > 500
--> n=null
null SELECT country, CASE WHEN count(*) > 900 THEN count(*) ELSE 0 END AS n FROM sales GROUP BY country HAVING count(*) > 500
--> n=null
null SELECT country, string_agg(stock_code, ',') FROM sales GROUP BY country HAVING count(*) > 500
--> string_agg=null
null SELECT * FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE n > 500 ORDER BY n DESC
--> n=null unsorted n
null SELECT * FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) "source" LIMIT 1001
--> n=null
null SELECT q.country, q.n::int AS total, round(q.s) FROM (SELECT country, count(*) AS n, sum(amount) AS s FROM sales GROUP BY country HAVING count(*) > 500) q ORDER BY total
--> n=null s=null unsorted total
null WITH q AS (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500), r AS (SELECT country, n AS m FROM q) SELECT country, m FROM r ORDER BY m
--> n=null unsorted m
null WITH q(land, total) AS (SELECT country, count(*) FROM sales GROUP BY country HAVING count(*) > 500) SELECT land, total FROM q
--> count=null
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 UNION ALL SELECT country, 0 FROM sales GROUP BY country HAVING count(*) > 50000
--> n=null
null SELECT name FROM regions WHERE EXISTS (SELECT country, count(*) FROM sales GROUP BY country HAVING count(*) > 500)
--> count=null
null SELECT r.region, q.n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q JOIN regions r ON r.name = q.country
--> n=null
null WITH per AS (SELECT customer_id, country, sum(amount) AS total FROM sales GROUP BY customer_id, country) SELECT country, count(*) AS buyers, avg(total) FROM per GROUP BY country HAVING count(*) > 50
--> buyers=null avg=null
null SELECT country, avg(total) AS mean FROM (SELECT customer_id, country, sum(amount) AS total FROM sales GROUP BY customer_id, country) q GROUP BY country HAVING count(*) > 50
--> mean=null
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 LIMIT 1000
--> n=null
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 ORDER BY n DESC LIMIT 1000
--> n=null unsorted n
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 ORDER BY n DESC LIMIT 3
--> n=null ranked
null SELECT country, count(*) AS n FROM sales GROUP BY country ORDER BY 2 DESC LIMIT 3
--> n=null ranked
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING 100.0 * count(*) FILTER (WHERE quantity < 0) / count(*) > 2
--> n=null
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 AND sum(amount) > 0 AND sum(amount) IS NOT NULL
--> n=null
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING (count(*) > 500) IS TRUE
--> n=null

-- # What cannot be passed on is refused as ever.
null SELECT country, count(*) AS n FROM sales GROUP BY country
--> KH101
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING sum(amount) IS NOT NULL AND count(*) > 0
--> KH101
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 0
--> KH101
null SELECT sum(n) FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q
--> KH101
threshold WITH q AS (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500), p(a, b) AS (SELECT * FROM q) SELECT sum(b) FROM p
--> KH101
threshold WITH q AS (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500), p(a, b) AS (TABLE q) SELECT b + 1 FROM p
--> KH101
threshold WITH q AS (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) SELECT sum(x) FROM (SELECT 1 AS x UNION ALL SELECT n FROM q) z
--> KH101
threshold SELECT "?column?" + 1 FROM (SELECT 1 UNION ALL SELECT n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q) z
--> KH101
threshold SELECT round + 1 FROM (SELECT round(n) FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q) z
--> KH101
threshold SELECT "?column?" + 1 FROM (SELECT country, count(*) + 1 FROM sales GROUP BY country HAVING count(*) > 500) q
--> KH101
null SELECT country, coalesce(n, 0) FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q
--> n=null coalesce=null
null SELECT country, n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q WHERE n IS NULL
--> KH101
null SELECT * FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q ORDER BY n DESC LIMIT 1000
--> n=null unsorted n
null SELECT country, n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE n > 500 ORDER BY 2 DESC LIMIT 1000
--> n=null unsorted n
null SELECT * FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q ORDER BY n DESC LIMIT 1
--> n=null ranked
null SELECT * FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q ORDER BY 2 DESC LIMIT 1000 OFFSET 1
--> KH101
null SELECT country, generate_series(1, 900), n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q ORDER BY n LIMIT 1000
--> KH101
null SELECT country, count(*) FILTER (WHERE stock_code IS NULL) AS n FROM sales GROUP BY country HAVING count(*) FILTER (WHERE stock_code IS NULL) > 500
--> n=null
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING sum(CASE WHEN quantity = 0 THEN 1 ELSE 0 END) > 500
--> n=null
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 0
--> KH101
null SELECT DISTINCT n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q
--> KH101
null SELECT DISTINCT count(*) FROM sales GROUP BY country HAVING count(*) > 500
--> KH101
null SELECT n, count(*) FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q GROUP BY n
--> KH101
null SELECT name FROM regions WHERE length(name) IN (SELECT count(*) FROM sales GROUP BY country HAVING count(*) > 500)
--> KH101
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 UNION SELECT country, 0 FROM sales GROUP BY country HAVING count(*) > 50000
--> KH101
null SELECT q FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q
--> KH101
null SELECT DISTINCT ON (country) country, month, count(*) AS n FROM sales GROUP BY country, month ORDER BY country, n DESC
--> n=null ranked
null SELECT DISTINCT ON (n) country, month, count(*) AS n FROM sales GROUP BY country, month ORDER BY n, sum(amount) DESC
--> KH101
null SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 ORDER BY country, n LIMIT 3
--> KH101
null SELECT a.country FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) a JOIN (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) b USING (country, n)
--> KH101
refuse SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500
--> KH101

-- # What the answer proves.
threshold SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500
--> n=at least 501
threshold SELECT country, count(*)::int, count(*) * 2 AS twice FROM sales GROUP BY country HAVING 500 <= count(*)
--> count=at least 500 twice=null
threshold SELECT country, sum(amount) AS s, sum(quantity) AS q FROM sales GROUP BY country HAVING sum(amount) > 20000.5 AND sum(quantity) > 10.5
--> s=at least 20000.5 q=at least 11
threshold SELECT country, count(*) AS n, sum(amount) AS s FROM sales GROUP BY country HAVING count(*) > 500 OR sum(amount) > 20000
--> n=null s=null
threshold SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 AND sum(amount) > 100 OR count(*) > 900
--> n=at least 501
threshold SELECT country, count(*) AS n FROM sales GROUP BY country HAVING (count(*) > 500 OR sum(amount) > 9000) AND (count(*) > 500 OR sum(amount) <= 9000)
--> n=at least 501
threshold SELECT country, count(*) AS n FROM sales GROUP BY country HAVING NOT (count(*) <= 500) AND count(*) < 900
--> n=at least 501
threshold SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) < 900
--> n=at most 899
threshold SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) BETWEEN 100 AND 900
--> n=at least 100
threshold SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) IN (700, 800)
--> n=at least 700
threshold SELECT country, round(avg(amount), 2) AS mean FROM sales GROUP BY country HAVING avg(amount) > 15.25 AND count(*) > 500
--> mean=at least 15.25
threshold SELECT country, count(*) FILTER (WHERE gift) AS gifts, count(*) FROM sales GROUP BY country HAVING count(*) FILTER (WHERE gift) > 50
--> gifts=at least 51 count=null
threshold SELECT * FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE n > 500
--> n=at least 501

-- # Joins, and questions over several private tables.
null SELECT r.region, count(*) AS n, max(r.name) FROM sales s JOIN regions r ON r.name = s.country GROUP BY r.region HAVING count(*) > 500
--> n=null max=null
null SELECT r.region, count(*) AS n FROM sales, regions r WHERE r.name = sales.country GROUP BY 1 HAVING count(*) > 500 ORDER BY n
--> n=null unsorted n
null SELECT country, public.sales.month, sum(public.sales.amount) AS s FROM public.sales GROUP BY country, public.sales.month HAVING count(*) > 500
--> s=null
null SELECT country, round(avg(amount), $1) AS a FROM sales GROUP BY country HAVING count(*) > $2
--> a=null
threshold SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > $1
--> n=null

-- # Beside ranks, and past several queries around the groups.
null WITH m AS (SELECT country, sum(amount) AS s FROM sales GROUP BY country) SELECT country, s, dense_rank() OVER (ORDER BY s DESC) AS r FROM m ORDER BY r LIMIT 2
--> s=null ranked
null WITH m AS (SELECT country, month, count(*) AS n FROM sales GROUP BY 1, 2) SELECT DISTINCT ON (country) * FROM m ORDER BY country, n DESC
--> n=null ranked
null SELECT country, n AS most FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY most DESC LIMIT 2
--> n=null ranked
null SELECT country, n::text AS n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY n DESC LIMIT 2
--> KH101
null SELECT country, n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY n DESC LIMIT 1000
--> KH101
null SELECT q, n FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY n DESC LIMIT 2
--> KH101
null SELECT * FROM (SELECT m.*, rank() OVER (PARTITION BY month ORDER BY n DESC) AS r FROM (SELECT country, month, count(*) AS n, sum(amount) AS s FROM sales GROUP BY 1, 2) m WHERE country <> 'Norway') x WHERE r = 1 AND s > 5000
--> n=null s=null ranked
null WITH a AS (SELECT country, count(*) AS n FROM sales GROUP BY country), b AS (SELECT *, rank() OVER (ORDER BY n DESC) AS r FROM a), c AS (SELECT country, n, CASE WHEN n > 700 THEN 'large' END AS size, r FROM b WHERE NOT n BETWEEN 500 AND 600) SELECT * FROM c WHERE r <= 2 OR n > 900 ORDER BY n > 800
--> n=null ranked
null WITH a AS (SELECT country, count(*) AS n FROM sales GROUP BY country LIMIT 2) SELECT country FROM a WHERE n > 500
--> KH101
null WITH a AS (SELECT country, count(*) AS n FROM sales GROUP BY country), b AS (SELECT * FROM a) SELECT country, n FROM b WHERE n > 500 AND country <> 'Norway'
--> n=null
threshold WITH a AS (SELECT country, count(*) AS n FROM sales GROUP BY country), b AS (SELECT country, n AS m FROM a) SELECT country, m FROM b WHERE m > 500
--> n=at least 501
null WITH a AS (SELECT country, count(*) AS n FROM sales GROUP BY country), b AS (SELECT country, n, lag(n) OVER (ORDER BY country) AS before FROM a) SELECT country, n, before FROM b WHERE n > 500
--> n=null before=null
null WITH a AS (SELECT country, count(*) AS n, sum(count(*)) OVER () AS total FROM sales GROUP BY country HAVING count(*) > 500), b AS (SELECT * FROM a) SELECT country FROM b WHERE n > 0.1 * total
--> KH101

-- # What windows compute of sizes, and what a query around computes.
null SELECT country, count(*) AS n, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS pct FROM sales GROUP BY country HAVING count(*) > 500 ORDER BY pct DESC
--> n=null pct=null unsorted pct
threshold SELECT country, month, count(*) * 1.0 / sum(count(*)) OVER (PARTITION BY country), sum(count(*)) OVER (PARTITION BY country ORDER BY month) FROM sales GROUP BY country, month HAVING count(*) > 500
--> ?column?=null sum=null
bands SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before, lag(count(*) > 500) OVER (ORDER BY month) AS was FROM sales GROUP BY month
--> n=null before=null
null SELECT country, count(*) * 100 / sum(count(*)) OVER () AS pct, rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY country
--> pct=null ranked
null SELECT country, count(*) * rank() OVER (ORDER BY count(*) DESC) AS x FROM sales GROUP BY country HAVING count(*) > 500
--> KH101
null SELECT country, sum(count(*)) OVER w AS total FROM sales GROUP BY country HAVING count(*) > 500 WINDOW w AS ()
--> total=null
null SELECT country, n, n * 100.0 / sum(n) OVER () AS pct FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE n > 500 ORDER BY pct
--> n=null pct=null unsorted pct
null SELECT q.country, s / n, to_char(s, '999') AS label FROM (SELECT country, count(*) AS n, sum(amount) AS s FROM sales GROUP BY country HAVING count(*) > 500) q
--> n=null s=null number 1=null label=null
null SELECT country, round(n / 7.0) AS weekly FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q ORDER BY 2 DESC LIMIT 2
--> n=null weekly=null ranked
null SELECT country, n * 100.0 / sum(n) OVER () AS pct FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q WHERE country <> 'Norway'
--> KH101
null SELECT max(n) / 2 AS half FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500) q
--> KH101
null SELECT source.region, count(*) AS n FROM (SELECT public.sales.amount AS amount, regions.region AS region FROM public.sales LEFT JOIN regions ON public.sales.country = regions.name) AS source GROUP BY source.region HAVING count(*) > 500
--> n=null
null SELECT *, n > 500 AS big FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> n=null
null SELECT q.*, CASE WHEN n > 500 THEN 'big' ELSE 'small' END AS size FROM (SELECT count(*) AS n, country FROM sales GROUP BY country) q ORDER BY n
--> n=null unsorted n
null WITH q AS (SELECT count(*) AS n, country FROM sales GROUP BY country) SELECT x.country, x.n, r.region, n > 500 FROM q x JOIN regions r ON r.name = x.country
--> n=null
threshold SELECT country, n / 2 AS half, n > 500 AS big FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE n > 100 AND country <> 'Spain'
--> n=at least 101 half=null
refuse SELECT country, n, n > 500 AS big FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q
--> KH101

-- # Shares, differences and growth beside a comparison with other groups

null SELECT country, count(*) AS n, round(100.0 * count(*) / (SELECT count(*) FROM sales), 1) AS pct FROM sales GROUP BY country HAVING 100.0 * count(*) / (SELECT count(*) FROM sales) >= 15 ORDER BY pct DESC
--> n=null pct=null unsorted pct
threshold SELECT month, a - b AS diff FROM (SELECT month, sum(amount) AS a, lag(sum(amount)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE a - b > 5000
--> a=null diff=null
null SELECT month, a, round(100.0 * (a - b) / nullif(b, 0), 1) AS growth FROM (SELECT month, sum(amount) AS a, lag(sum(amount)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE 100.0 * (a - b) / nullif(b, 0) >= 20
--> a=null growth=null
null WITH g AS (SELECT country, sum(amount) AS a FROM sales GROUP BY country), t AS (SELECT sum(a) AS a FROM g) SELECT g.country, g.a / t.a AS share FROM g, t WHERE g.a / t.a > 0.2 ORDER BY share DESC
--> a=null share=null unsorted share
null SELECT country, month, 100.0 * n / of_country AS pct FROM (SELECT country, month, count(*) AS n, sum(count(*)) OVER (PARTITION BY country) AS of_country FROM sales GROUP BY 1, 2) q WHERE 100.0 * n / of_country > 40
--> n=null pct=null
null SELECT country, a / (SELECT sum(amount) FROM sales) AS share FROM (SELECT country, sum(amount) AS a FROM sales GROUP BY country) q
--> KH101
