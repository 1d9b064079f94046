-- # Shares of a total, thresholds at a mean of all groups, neighbours in a calendar: windows over groups.
SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0.02 * (SELECT sum(amount) FROM sales)
--> [country 4] f0 > 0 ~60000000; sum(amount) - 0.02 * sum(sum(amount)) OVER () {} delta 7350000

SELECT country FROM sales GROUP BY country HAVING sum(amount) > (SELECT 0.02 * sum(amount) FROM sales)
--> [country 4] f0 > 0 ~60000000; sum(amount) - 0.02 * sum(sum(amount)) OVER () {} delta 7350000

SELECT country FROM sales GROUP BY country HAVING 100.0 * count(*) / (SELECT count(*) FROM sales) >= 5
--> [country 4] f0 > -1 ~15000; count(*) - 0.05 * sum(count(*)) OVER () {} delta 1900

SELECT country FROM sales GROUP BY country HAVING count(*)::numeric / (SELECT count(*) FROM sales) BETWEEN 0.1 AND 0.4
--> [country 4] (f0 > -1 ~20000 and f1 <= 0 ~9500); count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; count(*) - 0.4 * sum(count(*)) OVER () {} delta 300

SELECT s.country FROM sales s WHERE gift GROUP BY 1 HAVING sum(amount) > 0.1 * (SELECT sum(o.amount) FROM sales o WHERE o.gift) AND count(*) > 50
--> [country 4] where "gift" = true (f0 > 0 ~11000000 and f1 > 50 ~5); sum(amount) - 0.1 * sum(sum(amount)) OVER () {} delta 1350000; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE gift GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> [country 4] f0 > 0 ~13000; count(*) FILTER (WHERE gift) - 0.1 * sum(count(*)) OVER () {} delta 1100

SELECT month FROM sales GROUP BY month HAVING count(*) > (SELECT avg(n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q)
--> [month 13] f0 > 0 ~9880; count(*) - avg(count(*)) OVER () {} delta 1200

SELECT month FROM sales GROUP BY 1 HAVING count(*) < 0.5 * (SELECT avg(n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY 1) q)
--> [month 13] f0 <= -1 ~20280; count(*) - 0.5 * avg(count(*)) OVER () {} delta 2500

SELECT month FROM sales GROUP BY month HAVING count(*) > (SELECT max(n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q)
--> [month 13] f0 > 0 ~1800; count(*) - max(count(*)) OVER () {} delta 100

SELECT country, month FROM sales s GROUP BY country, month HAVING count(*) > 0.1 * (SELECT count(*) FROM sales t WHERE t.country = s.country)
--> [country 4, month 13] f0 > 0 ~7600; count(*) - 0.1 * sum(count(*)) OVER (PARTITION BY "country") {} delta 900

SELECT country, month FROM sales s GROUP BY country, month HAVING count(*) > 0.1 * (SELECT count(*) FROM sales t WHERE t.gift = s.gift)
--> KH107 count(*)

SELECT country FROM (SELECT country, sum(amount) AS s, sum(sum(amount)) OVER () AS total FROM sales GROUP BY country) q WHERE s > 0.01 * total
--> [country 4] f0 > 0 ~120000000; sum(amount) - 0.01 * sum(sum(amount)) OVER () {} delta 14850000

SELECT country FROM (SELECT country, sum(amount) AS s, sum(sum(amount)) OVER () AS total FROM sales GROUP BY country) q WHERE s / total > 0.01
--> [country 4] ((f0 > 0 ~320000000 and f1 > 0 ~6300000) or (f0 <= -1 ~320000000 and f1 <= -1 ~6300000)); sum(amount) - 0.01 * sum(sum(amount)) OVER () {} delta 14850000; sum(sum(amount)) OVER () {} delta 150000

SELECT country FROM (SELECT country, count(*) AS n, sum(count(*)) OVER () AS total FROM sales GROUP BY country) q WHERE n / nullif(total, 0) > 0.01
--> [country 4] f0 > 0 ~79000; count(*) - 0.01 * sum(count(*)) OVER () {} delta 9900

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n / nullif(b, 0) > 1
--> KH204 n

SELECT month FROM (SELECT month, sum(amount) AS s, lag(sum(amount)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE s > 1.2 * before AND before > 10000
--> [month 13] (f0 > 0 ~540000 and f1 > 1000000 ~100000); sum(amount) - 1.2 * lag(sum(amount)) OVER (ORDER BY month) {} delta 750000; lag(sum(amount)) OVER (ORDER BY month) {} delta 1

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE n < 0.8 * before AND before >= 5000
--> [month 13] (f0 <= -1 ~1800 and f1 > 4999 ~500); count(*) - 0.8 * lag(count(*)) OVER (ORDER BY month) {} delta 500; lag(count(*)) OVER (ORDER BY month) {} delta 1

SELECT month FROM (SELECT month, sum(amount) AS s, lag(sum(amount)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE (s - before) / nullif(before, 0) > 0.2 AND before >= 100000
--> [month 13] (f0 > 0 ~5400000 and f1 > 9999999 ~1000000); sum(amount) - 1.2 * lag(sum(amount)) OVER (ORDER BY month) {} delta 750000; lag(sum(amount)) OVER (ORDER BY month) {} delta 1

SELECT month FROM (SELECT month, sum(amount) AS s, lag(sum(amount)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE s / before NOT BETWEEN 0.8 AND 1.2 AND before BETWEEN 100000 AND 900000
--> [month 13] ((f0 <= -1 ~3600000 or f1 > 0 ~5400000) and f2 > 9999999 ~1000000 and f3 <= 90000000 ~9000000); sum(amount) - 0.8 * lag(sum(amount)) OVER (ORDER BY month) {} delta 750000; sum(amount) - 1.2 * lag(sum(amount)) OVER (ORDER BY month) {} delta 750000; lag(sum(amount)) OVER (ORDER BY month) {} delta 1; lag(sum(amount)) OVER (ORDER BY month) {} delta 1

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE (n > 1.2 * before AND before >= 5000) OR (n > 1.5 * before AND before >= 1000)
--> [month 13] ((f0 > 0 ~2700 and f1 > 4999 ~500) or (f2 > 0 ~270 and f1 > 999 ~100)); count(*) - 1.2 * lag(count(*)) OVER (ORDER BY month) {} delta 500; lag(count(*)) OVER (ORDER BY month) {} delta 1; count(*) - 1.5 * lag(count(*)) OVER (ORDER BY month) {} delta 200

SELECT country, month, before >= 5000 AND n > 1.2 * before AS up FROM (SELECT country, month, count(*) AS n, lag(count(*), 12) OVER (PARTITION BY country ORDER BY month) AS before FROM sales GROUP BY country, month) q
--> [country 4, month 13] true show (f0 > 4999 ~500 and f1 > 0 ~2700); lag(count(*), 12) OVER (PARTITION BY country ORDER BY month) {} delta 1; count(*) - 1.2 * lag(count(*), 12) OVER (PARTITION BY country ORDER BY month) {} delta 500

SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0.1 * (SELECT sum(amount) FROM sales) AND (SELECT sum(amount) FROM sales) >= 1000000
--> [country 4] (f0 > 0 ~9000000 and f1 > 99999999 ~10000000); sum(amount) - 0.1 * sum(sum(amount)) OVER () {} delta 1350000; sum(sum(amount)) OVER () {} delta 150000

SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS usual FROM sales GROUP BY month) q WHERE n > 1.3 * usual AND usual > 6000
--> [month 13] (f0 > 0 ~42120 and f1 > 36000 ~3600); count(*) - 1.3 * avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) {} delta 6000; avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) {} delta 1

SELECT month FROM (SELECT month, sum(amount) AS s, lag(sum(amount)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE s / before > 1.2 AND before < -1000
--> [month 13] (((f0 > 0 ~24500000 and f1 > 0 ~3200000) or (f2 <= -1 ~24500000 and f3 <= -1 ~3200000)) and f3 <= -100001 ~10000); sum(amount) - 1.2 * lag(sum(amount)) OVER (ORDER BY month) {} delta 750000; lag(sum(amount)) OVER (ORDER BY month) {} delta 1; sum(amount) - 1.2 * lag(sum(amount)) OVER (ORDER BY month) {} delta 750000; lag(sum(amount)) OVER (ORDER BY month) {} delta 1

WITH m AS (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) SELECT month FROM m WHERE n > before + 500
--> [month 13] f0 > 500 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, count(*) AS n, lead(count(*)) OVER (ORDER BY month DESC) AS before FROM sales GROUP BY month) q WHERE n > before + 500
--> [month 13] f0 > 500 ~1200; count(*) - lead(count(*)) OVER (ORDER BY month DESC) {} delta 100

SELECT country, month FROM (SELECT country, month, count(*) AS n, lag(count(*), 12) OVER (PARTITION BY country ORDER BY month) AS last_year FROM sales GROUP BY 1, 2) q WHERE n < last_year - 100
--> [country 4, month 13] f0 <= -101 ~1200; count(*) - lag(count(*), 12) OVER (PARTITION BY country ORDER BY month) {} delta 100

SELECT country, month FROM (SELECT country, month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM sales GROUP BY 1, 2) q WHERE n < before - 100
--> KH204 n

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*), 20) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE n > before
--> [month 13] false; 

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*), 1, 0) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE n > before + 500
--> [month 13] f0 > 500 ~1200; count(*) - lag(count(*), 1, 0) OVER (ORDER BY month) {} delta 100

SELECT month, avg(sum(amount)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) > 300000 AS strong FROM sales GROUP BY month
--> [month 13] true show f0 > 180000000 ~18000000; avg(sum(amount)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) {} delta 900000

SELECT month, sum(count(*)) OVER (ORDER BY month ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) > 9000 AS busy FROM sales GROUP BY month
--> [month 13] true show f0 > 9000 ~900; sum(count(*)) OVER (ORDER BY month ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) {} delta 100

SELECT month, sum(count(*)) OVER (ORDER BY month) > 40000 AS reached FROM sales GROUP BY month
--> [month 13] true show f0 > 40000 ~4000; sum(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, sum(count(*)) OVER (PARTITION BY extract(year FROM month) ORDER BY month) AS so_far FROM sales GROUP BY month) q WHERE so_far > 200000
--> [month 13] f0 > 200000 ~20000; sum(count(*)) OVER (PARTITION BY EXTRACT(YEAR FROM month) ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, sum(count(*)) OVER (PARTITION BY date_trunc('year', month)) AS year FROM sales GROUP BY month) q WHERE year > 20000
--> [month 13] f0 > 20000 ~2000; sum(count(*)) OVER (PARTITION BY date_trunc('YEAR', month)) {} delta 100

SELECT month, count(*) > 0.5 * first_value(count(*)) OVER (ORDER BY month) AS kept FROM sales GROUP BY month
--> [month 13] true show f0 > 0 ~1780; count(*) - 0.5 * first_value(count(*)) OVER (ORDER BY month) {} delta 200

SELECT month, count(*) > avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS rising FROM sales GROUP BY month
--> [month 13] true show f0 > 0 ~7200; count(*) - avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) {} delta 600

SELECT month, count(*) > lag(count(*)) OVER (ORDER BY month) AND lag(count(*)) OVER (ORDER BY month) > lag(count(*), 2) OVER (ORDER BY month) AS twice FROM sales GROUP BY month
--> [month 13] true show (f0 > 0 ~3000 and f1 > 0 ~3000); count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100; lag(count(*)) OVER (ORDER BY month) - lag(count(*), 2) OVER (ORDER BY month) {} delta 1

SELECT country, count(*) > 0.1 * (SELECT count(*) FROM sales) AS big FROM sales GROUP BY country
--> [country 4] true show f0 > 0 ~7200; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT country, count(*) > 0.1 * sum(count(*)) OVER () AS big FROM sales GROUP BY country HAVING count(*) > 100
--> KH204 count(*)

SELECT country FROM sales GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) UNION SELECT country FROM sales GROUP BY country HAVING sum(amount) > 40000
--> [country 4] (f0 > 0 ~7200 or f1 > 4000000 ~400000); count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; sum(amount) delta 150000 in -100000..150000

SELECT country FROM sales GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY sum(amount) DESC LIMIT 3
--> [country 4] f0 > 0 ~7200 first 3 falling ~1100000 signed priced; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; sum(amount) delta 150000 in -100000..150000

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month HAVING count(*) > 100) q WHERE n > b + 100
--> KH204 lag(count(*))

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE (month >= '2011-06-01' AND n > b + 100)
--> KH204 (month

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE month >= '2011-06-01' AND n > b + 100
--> [month 13] f0 > 100 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT country FROM (SELECT country, avg(amount) AS a, avg(avg(amount)) OVER () AS all_ FROM sales GROUP BY country) q WHERE a > all_
--> KH206 a else [country 4] (f0 > 0 ~14000 and f1 > 44999 ~4500 and f2 > 49999 ~5000); avg(amount) - avg(avg(amount)) OVER () {} delta 150000; min(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING avg(amount) > (SELECT avg(amount) FROM sales)
--> KH206 avg(amount) else [month 13] (f0 > 0 ~6800 and f1 > 589999 ~59000 and f2 > 49999 ~5000); avg(amount) - sum(sum(amount)) OVER () / sum(count(amount)) OVER () {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING (SELECT avg(amount) FROM sales) < avg(amount)
--> KH206 (SELECT else [month 13] (f0 > 0 ~6800 and f1 > 589999 ~59000 and f2 > 49999 ~5000); avg(amount) - sum(sum(amount)) OVER () / sum(count(amount)) OVER () {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING avg(amount) > (SELECT sum(amount) / count(amount) FROM sales)
--> KH206 avg(amount) else [month 13] (f0 > 0 ~6800 and f1 > 589999 ~59000 and f2 > 49999 ~5000); avg(amount) - sum(sum(amount)) OVER () / sum(count(amount)) OVER () {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING sum(amount) / count(amount) < 0.5 * (SELECT avg(amount) FROM sales)
--> KH206 sum(amount) else [month 13] (f0 <= -1 ~3400 and f1 > 1199999 ~120000 and f2 > 99999 ~10000); sum(amount) / count(amount) - 0.5 * sum(sum(amount)) OVER () / sum(count(amount)) OVER () {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING avg(amount) BETWEEN (SELECT avg(amount) FROM sales) - 5 AND (SELECT avg(amount) FROM sales) + 5
--> KH206 avg(amount) else [month 13] (f0 > -1 ~6800 and f1 > 589999 ~59000 and f2 > 49999 ~5000 and f3 <= 0 ~6800); avg(amount) - (sum(sum(amount)) OVER () / sum(count(amount)) OVER () - 5) {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100; avg(amount) - (sum(sum(amount)) OVER () / sum(count(amount)) OVER () + 5) {} delta 150000

SELECT month FROM sales GROUP BY month HAVING NOT (avg(amount) > (SELECT avg(amount) FROM sales)) AND count(*) > 100
--> KH206 avg(amount) else [month 13] (f0 <= 0 ~6800 and f1 > 589999 ~59000 and f2 > 49999 ~5000 and f3 > 100 ~10); avg(amount) - sum(sum(amount)) OVER () / sum(count(amount)) OVER () {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country HAVING avg(amount) > (SELECT avg(amount) FROM sales WHERE gift)
--> KH206 avg(amount) else [country 4] (f0 > 0 ~6800 and f1 > 179999 ~18000 and f2 > 49999 ~5000); avg(amount) - sum(sum(amount) FILTER(WHERE (gift))) OVER () / sum(count(amount) FILTER(WHERE (gift))) OVER () {} delta 150000; sum(count(amount) FILTER(WHERE (gift))) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT country FROM sales WHERE gift GROUP BY country HAVING avg(amount) > (SELECT avg(amount) FROM sales WHERE gift AND quantity > 2)
--> KH206 avg(amount) else [country 4] where "gift" = true (f0 > 0 ~6800 and f1 > 179999 ~18000 and f2 > 49999 ~5000); avg(amount) - sum(sum(amount) FILTER(WHERE (quantity > 2))) OVER () / sum(count(amount) FILTER(WHERE (quantity > 2))) OVER () {} delta 150000; sum(count(amount) FILTER(WHERE (quantity > 2))) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT country FROM sales WHERE gift GROUP BY country HAVING avg(amount) > (SELECT avg(amount) FROM sales)
--> KH206 avg(amount) else [country 4] (f0 > 0 ~6800 and f1 > 179999 ~18000 and f2 > 49999 ~5000); avg(amount) FILTER (WHERE gift) - sum(sum(amount)) OVER () / sum(count(amount)) OVER () {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) FILTER (WHERE gift) delta 100 in 0..100

SELECT country FROM sales WHERE gift GROUP BY country HAVING count(*) > 0.5 * (SELECT count(*) FROM sales WHERE gift AND quantity > 2)
--> [country 4] where "gift" = true f0 > 0 ~4600; count(*) - 0.5 * sum(count(*) FILTER(WHERE (quantity > 2))) OVER () {} delta 300

SELECT country, month FROM sales s GROUP BY country, month HAVING avg(amount) > 2 * (SELECT avg(t.amount) FROM sales t WHERE t.country = s.country)
--> KH206 avg(amount) else [country 4, month 13] (f0 > 0 ~6800 and f1 > 589999 ~59000 and f2 > 49999 ~5000); avg(amount) - 2 * sum(sum(amount)) OVER (PARTITION BY "country") / sum(count(amount)) OVER (PARTITION BY "country") {} delta 150000; sum(count(amount)) OVER (PARTITION BY "country") {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM (SELECT month, avg(amount) AS m, lag(avg(amount)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE m > b + 2
--> KH206 m else [month 13] (f0 > 0 ~6800 and f1 > 44999 ~4500 and f2 > 49999 ~5000); avg(amount) - (lag(avg(amount)) OVER (ORDER BY month) + 2) {} delta 150000; lag(count(amount)) OVER (ORDER BY month) {} delta 1; count(amount) delta 100 in 0..100

SELECT month FROM (SELECT month, avg(amount) AS m, lag(avg(amount)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE m > 1.2 * b AND m > 3
--> KH206 m else [month 13] (f0 > 0 ~6800 and f1 > 44999 ~4500 and f2 > 49999 ~5000 and f3 > 0 ~1350000); avg(amount) - 1.2 * lag(avg(amount)) OVER (ORDER BY month) {} delta 150000; lag(count(amount)) OVER (ORDER BY month) {} delta 1; count(amount) delta 100 in 0..100; avg(amount) - 3 1x-300 delta 149100 in -130000..149100

SELECT month FROM (SELECT month, avg(amount) AS m, lag(avg(amount)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE (m - b) / b > 0.1
--> KH204 (m

SELECT month FROM (SELECT month, avg(amount) AS m, lag(avg(amount), 1, 0) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE m > b
--> KH204 m

SELECT month FROM (SELECT month, avg(amount) AS m, sum(sum(amount)) OVER (ORDER BY month ROWS 2 PRECEDING) / sum(count(amount)) OVER (ORDER BY month ROWS 2 PRECEDING) AS b FROM sales GROUP BY month) q WHERE m > 1.1 * b
--> KH206 m else [month 13] (f0 > 0 ~6800 and f1 > 139999 ~14000 and f2 > 49999 ~5000); avg(amount) - 1.1 * sum(sum(amount)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) / sum(count(amount)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) {} delta 150000; sum(count(amount)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM (SELECT month, avg(amount) AS m, avg(avg(amount)) OVER (ORDER BY month ROWS 2 PRECEDING) AS b FROM sales GROUP BY month) q WHERE m > 1.1 * b
--> KH204

SELECT month FROM sales GROUP BY month HAVING avg(CASE WHEN gift THEN 1.0 ELSE 0 END) > (SELECT avg(CASE WHEN gift THEN 1.0 ELSE 0 END) FROM sales)
--> KH206 avg(CASE else [month 13] (f0 > 0 ~6700 and f1 > 589999 ~59000 and f2 > 49999 ~5000); avg(CASE WHEN gift THEN 1.0 ELSE 0 END) - sum(sum(CASE WHEN gift THEN 1.0 ELSE 0 END)) OVER () / sum(count(CASE WHEN gift THEN 1.0 ELSE 0 END)) OVER () {} delta 100; sum(count(CASE WHEN gift THEN 1.0 ELSE 0 END)) OVER () {} delta 100; count(*) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING count(*) FILTER (WHERE gift)::float / count(*) > (SELECT count(*) FILTER (WHERE gift)::float / count(*) FROM sales)
--> KH206 count(*) else [month 13] (f0 > 0 ~6700 and f1 > 589999 ~59000 and f2 > 49999 ~5000); count(*) FILTER (WHERE gift) / count(*) - sum(count(*) FILTER(WHERE gift)) OVER () / sum(count(*)) OVER () {} delta 100; sum(count(*)) OVER () {} delta 100; count(*) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING count(*) FILTER (WHERE gift) / count(*) > (SELECT count(*) FILTER (WHERE gift) / count(*) FROM sales)
--> KH204 (SELECT

SELECT month FROM sales GROUP BY month HAVING avg(amount) > (SELECT avg(quantity) FROM sales)
--> KH206 avg(amount) else [month 13] (f0 > 0 ~6800 and f1 > 5899999 ~590000 and f2 > 499999 ~50000); avg(amount) - sum(sum(quantity)) OVER () / sum(count(quantity)) OVER () {} delta 150000; sum(count(quantity)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING avg(amount) > (SELECT avg(amount) FROM sales) + 2000
--> KH204 avg(amount)

SELECT country FROM (SELECT country, count(DISTINCT customer_id) AS n, sum(count(DISTINCT customer_id)) OVER () AS all_ FROM sales GROUP BY country) q WHERE n > 0.1 * all_
--> KH204

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER (ORDER BY country) AS b FROM sales GROUP BY month) q WHERE n > b
--> KH204 n

SELECT country FROM (SELECT country, count(*) AS n, lag(count(*)) OVER (ORDER BY country) AS b FROM sales GROUP BY country) q WHERE n > b
--> KH204 n

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '2 months' PRECEDING AND CURRENT ROW) AS b FROM sales GROUP BY month) q WHERE b > 5000
--> [month 13] f0 > 5000 ~500; sum(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '2 MONTHS' PRECEDING AND CURRENT ROW) {} delta 100

SELECT month FROM (SELECT month, stddev(count(*)) OVER () AS b, count(*) AS n FROM sales GROUP BY month) q WHERE n > 2 * b
--> [month 13] f0 > 0 ~5200; count(*) - 2 * stddev(count(*)) OVER () {} delta 200

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE (n > b) IS NOT TRUE
--> KH204 (n

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n IS DISTINCT FROM b
--> KH204 n

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE NOT (n > b)
--> [month 13] f0 <= 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n > coalesce(b, 0) + 500
--> [month 13] f0 > 500 ~1200; count(*) - coalesce(lag(count(*)) OVER (ORDER BY month), 0) {} delta 100

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER () AS t FROM sales GROUP BY month) q WHERE n / nullif(t, 5) > 0.1
--> KH204 n

SELECT country, month FROM (SELECT country, month, count(*) AS n, sum(count(*)) OVER (PARTITION BY country) AS t FROM sales GROUP BY 1, 2) q WHERE n / nullif(t, 0) >= 0.1
--> [country 4, month 13] (f0 > -1 ~21000 and f1 > 0 ~7400); count(*) - 0.1 * sum(count(*)) OVER (PARTITION BY country) {} delta 900; sum(count(*)) OVER (PARTITION BY country) {} delta 100

SELECT month FROM (SELECT month, 2 * count(*) AS n, first_value(2 * count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n / nullif(b, 0) > 1
--> KH204 n

SELECT month FROM (SELECT month, sum(count(*)) OVER (PARTITION BY date_trunc('year', month - interval '6 months')) AS n FROM sales GROUP BY month) q WHERE n > 500
--> [month 13] f0 > 500 ~50; sum(count(*)) OVER (PARTITION BY date_trunc('YEAR', month - INTERVAL '6 MONTHS')) {} delta 100

SELECT month, count(*) > sum(count(*)) OVER w AS x FROM sales GROUP BY month WINDOW w AS (PARTITION BY month)
--> KH204 sum(count(*))

SELECT country FROM sales GROUP BY country HAVING 100 * count(*) / (SELECT count(*) FROM sales) > 5
--> KH204 100

SELECT country FROM sales GROUP BY country HAVING sum(quantity) > 0.1 * (SELECT sum(quantity) FROM sales)
--> [country 4] f0 > 0 ~72000; sum(quantity) - 0.1 * sum(sum(quantity)) OVER () {} delta 9000

SELECT country FROM sales s WHERE country = 'France' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales t WHERE s.country = 'France')
--> KH107 count(*)

SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0.1 * (SELECT sum(amount) FROM sales t(amount))
--> KH107 sum(amount)

SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0.1 * (SELECT sum(amount) FROM sales TABLESAMPLE SYSTEM (10))
--> KH107 sum(amount)

SELECT month FROM sales GROUP BY month HAVING count(*) > (SELECT avg(n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q(n, m))
--> KH107 avg(n)

SELECT country FROM sales s GROUP BY country HAVING sum(amount) > 0.1 * (SELECT sum(s.amount) FROM sales t)
--> KH107 sum(s.amount)

SELECT country, month, count(*) > 2 * first_value(count(*)) OVER (ORDER BY month) AS grown FROM sales GROUP BY country, month
--> KH204 first_value(count(*))

SELECT country, month, count(*) > 2 * first_value(count(*)) OVER (PARTITION BY country ORDER BY month) AS grown FROM sales GROUP BY country, month
--> [country 4, month 13] true show f0 > 0 ~1800; count(*) - 2 * first_value(count(*)) OVER (PARTITION BY country ORDER BY month) {} delta 100

SELECT country, month, count(*) > 0.5 * sum(count(*)) OVER (ORDER BY month) AS much FROM sales GROUP BY country, month
--> [country 4, month 13] true show f0 > 0 ~6000; count(*) - 0.5 * sum(count(*)) OVER (ORDER BY month) {} delta 100

SELECT country FROM sales s GROUP BY country HAVING count(*) > 0.1 * (SELECT sum(CASE WHEN t.country = s.country THEN 1 END) FROM sales t)
--> KH107 sum(CASE

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.n > 1.2 * b.n
--> [month 13] f0 > 0 ~6500; count(*) - 1.2 * first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 500

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT cur.month FROM m prev, m cur WHERE prev.month + interval '1 month' = cur.month AND cur.n > prev.n + 500
--> [month 13] f0 > 500 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100

SELECT a.month FROM (SELECT month, sum(amount) AS s FROM sales GROUP BY month) a JOIN (SELECT month, sum(amount) AS s FROM sales GROUP BY month) b ON b.month = a.month - interval '1 year' WHERE a.s > b.s + 1000
--> [month 13] f0 > 100000 ~1800000; sum(amount) - first_value(sum(amount)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '12 MONTHS' PRECEDING AND INTERVAL '12 MONTHS' PRECEDING) {} delta 150000

WITH cur AS (SELECT month, count(*) AS n FROM sales WHERE gift GROUP BY month), prev AS (SELECT month, sum(amount) AS s, count(*) AS n FROM sales WHERE gift GROUP BY 1) SELECT cur.month FROM cur JOIN prev ON cur.month = prev.month + '1 month'::interval WHERE cur.n > prev.n + 500 AND prev.s > 1000
--> [month 13] where "gift" = true (f0 > 500 ~1200 and f1 > 100000 ~10000); count(*) - first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100; first_value(sum(amount)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 1

WITH m AS (SELECT country, month, count(*) AS n FROM sales GROUP BY country, month) SELECT a.country, a.month FROM m a JOIN m b ON b.country = a.country AND b.month = a.month - interval '1 month' WHERE a.n > 1.2 * b.n
--> [country 4, month 13] f0 > 0 ~6500; count(*) - 1.2 * first_value(count(*)) OVER (PARTITION BY country ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 500

WITH m AS (SELECT country, month, count(*) AS n FROM sales GROUP BY country, month) SELECT country, a.month FROM m a JOIN m b USING (country) WHERE b.month = a.month - interval '1 month' AND a.n > b.n + 100
--> [country 4, month 13] f0 > 100 ~1200; count(*) - first_value(count(*)) OVER (PARTITION BY country ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' JOIN m c ON c.month = b.month - interval '1 month' WHERE a.n > b.n AND b.n > c.n
--> [month 13] (f0 > 0 ~3000 and f1 > 0 ~3000); count(*) - first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100; first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) - first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '2 MONTHS' PRECEDING AND INTERVAL '2 MONTHS' PRECEDING) {} delta 1

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month FROM m a LEFT JOIN m b ON b.month = a.month - interval '1 month' WHERE a.n > b.n + 500
--> [month 13] f0 > 500 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100

WITH d AS (SELECT date_trunc('month', invoice_date) AS m, count(*) AS n FROM sales WHERE invoice_date >= '2011-01-01' AND invoice_date < '2012-01-01' GROUP BY 1) SELECT a.m FROM d a JOIN d b ON b.m + interval '1 month' = a.m WHERE a.n > b.n + 500
--> [month 12] where ("invoice_date" < timestamp '2012-01-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') f0 > 500 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY date_trunc('MONTH', invoice_date) RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month, b.month AS before FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.n > b.n + 500 AND b.month >= '2011-03-01'
--> [month 13] f0 > 500 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month FROM m a JOIN m b ON b.month < a.month WHERE a.n > 1.2 * b.n
--> KH101 count(*)

WITH m AS (SELECT country, month, count(*) AS n FROM sales GROUP BY country, month) SELECT a.country, a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.n > b.n + 100
--> KH101 count(*)

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.n > 500 OR a.n > b.n + 500
--> KH101 count(*)

WITH d AS (SELECT invoice_date::date AS d, count(*) AS n FROM sales WHERE invoice_date >= '2011-01-01' AND invoice_date < '2011-03-01' GROUP BY 1) SELECT a.d FROM d a JOIN d b ON b.d + interval '1 month' = a.d WHERE a.n > b.n + 50
--> KH101 count(*)

WITH d AS (SELECT invoice_date::date AS d, count(*) AS n FROM sales WHERE invoice_date >= '2011-01-01' AND invoice_date < '2011-03-01' GROUP BY 1) SELECT a.d FROM d a JOIN d b ON b.d = a.d - interval '1 month' WHERE a.n > b.n + 50
--> [date(invoice_date) 59] where ("invoice_date" < timestamp '2011-03-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') f0 > 50 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY CAST(invoice_date AS DATE) RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100

WITH d AS (SELECT invoice_date::date AS d, count(*) AS n FROM sales WHERE invoice_date >= '2011-01-01' AND invoice_date < '2011-03-01' GROUP BY 1) SELECT a.d FROM d a JOIN d b ON b.d = a.d - 7 WHERE a.n > b.n + 50
--> [date(invoice_date) 59] where ("invoice_date" < timestamp '2011-03-01 00:00:00' AND "invoice_date" >= timestamp '2011-01-01 00:00:00') f0 > 50 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY CAST(invoice_date AS DATE) RANGE BETWEEN INTERVAL '7 DAYS' PRECEDING AND INTERVAL '7 DAYS' PRECEDING) {} delta 100

WITH d AS (SELECT extract(hour FROM invoice_date) AS h, count(*) AS n FROM sales GROUP BY 1) SELECT a.h FROM d a JOIN d b ON b.h = a.h - 1 WHERE a.n > b.n + 50
--> KH204 a.n

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month, a.n > b.n + 500 AS grown FROM m a JOIN m b ON b.month = a.month - interval '1 month' ORDER BY a.month
--> KH101 count(*)

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month, a.n > b.n + 500 AS grown FROM m a LEFT JOIN m b ON b.month = a.month - interval '1 month' ORDER BY a.month
--> [month 13] true show f0 > 500 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month, a.n - b.n AS growth FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.n > b.n + 500
--> KH101 count(*)

SELECT a.country FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) a JOIN (SELECT country, sum(quantity) AS n FROM sales GROUP BY country) b USING (country, n) WHERE a.n > 500
--> KH101 count(*)

SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER (ORDER BY month RANGE BETWEEN '2 months'::interval PRECEDING AND '1 day'::interval PRECEDING) AS b FROM sales GROUP BY month) q WHERE n > b
--> [month 13] f0 > 0 ~2400; count(*) - avg(count(*)) OVER (ORDER BY month RANGE BETWEEN CAST('2 months' AS INTERVAL) PRECEDING AND CAST('1 day' AS INTERVAL) PRECEDING) {} delta 200

SELECT country, month FROM (SELECT country, month, count(*) AS n, sum(count(*)) OVER (ORDER BY month RANGE INTERVAL '1' MONTH PRECEDING) AS b FROM sales GROUP BY country, month) q WHERE n > 0.5 * b
--> [country 4, month 13] f0 > 0 ~2400; count(*) - 0.5 * sum(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND CURRENT ROW) {} delta 100

SELECT month FROM (SELECT month, sum(count(*)) OVER (ORDER BY month DESC RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS b FROM sales GROUP BY month) q WHERE b > 5000
--> [month 13] f0 > 5000 ~500; sum(count(*)) OVER (ORDER BY month DESC RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) {} delta 100

SELECT month FROM (SELECT month, sum(count(*)) OVER (ORDER BY month RANGE 60 PRECEDING) AS b FROM sales GROUP BY month) q WHERE b > 5000
--> KH204 b

SELECT month FROM (SELECT month, sum(count(*)) OVER (ORDER BY month RANGE INTERVAL '-1 month' PRECEDING) AS b FROM sales GROUP BY month) q WHERE b > 5000
--> KH204 b

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER (ORDER BY month RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) AS b FROM sales GROUP BY month) q WHERE n > b
--> KH204 n

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*), 2) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 month' PRECEDING AND INTERVAL '1 month' PRECEDING) AS b FROM sales GROUP BY month) q WHERE n > b
--> [month 13] f0 > 0 ~1200; count(*) - lag(count(*), 2) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 100

SELECT q FROM (SELECT date_trunc('quarter', s.month) AS q, count(*) AS n, lag(count(*)) OVER (ORDER BY date_trunc('quarter', s.month)) AS b FROM sales s GROUP BY 1) t WHERE n > 1.1 * b
--> [date_trunc('QUARTER', month) 5] f0 > 0 ~12000; count(*) - 1.1 * lag(count(*)) OVER (ORDER BY date_trunc('QUARTER', s.month)) {} delta 1000

SELECT y FROM (SELECT extract(year FROM month) AS y, count(*) AS n, lag(count(*)) OVER (ORDER BY extract(year FROM month)) AS b FROM sales GROUP BY 1) t WHERE n > 1.1 * b
--> [EXTRACT(YEAR FROM month) 2] f0 > 0 ~12000; count(*) - 1.1 * lag(count(*)) OVER (ORDER BY EXTRACT(YEAR FROM month)) {} delta 1000

SELECT q, country FROM (SELECT date_trunc('quarter', month)::date AS q, country, count(*) AS n, sum(count(*)) OVER (PARTITION BY date_trunc('quarter', month)::date) AS b FROM sales GROUP BY 1, 2) t WHERE n > 0.5 * b
--> [CAST(date_trunc('QUARTER', month) AS DATE) 5, country 4] f0 > 0 ~1640; count(*) - 0.5 * sum(count(*)) OVER (PARTITION BY CAST(date_trunc('QUARTER', month) AS DATE)) {} delta 100

SELECT m FROM (SELECT extract(month FROM month) AS m, count(*) AS n, lag(count(*)) OVER (ORDER BY extract(month FROM month)) AS b FROM sales GROUP BY 1) t WHERE n > b
--> KH204 n

SELECT country FROM (SELECT upper(country) AS country, count(*) AS n, lag(count(*)) OVER (ORDER BY upper(country)) AS b FROM sales GROUP BY 1) t WHERE n > b
--> KH204 n

WITH q AS (SELECT date_trunc('quarter', month) AS q, count(*) AS n FROM sales GROUP BY 1) SELECT a.q FROM q a JOIN q b ON b.q = a.q - interval '3 months' WHERE a.n > b.n
--> [date_trunc('QUARTER', month) 5] f0 > 0 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY date_trunc('QUARTER', month) RANGE BETWEEN INTERVAL '3 MONTHS' PRECEDING AND INTERVAL '3 MONTHS' PRECEDING) {} delta 100

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER w AS b FROM sales GROUP BY month WINDOW w AS (ORDER BY month)) q WHERE n > b
--> [month 13] f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT country, month FROM (SELECT country, month, count(*) AS n, sum(count(*)) OVER (p ORDER BY month ROWS 2 PRECEDING) AS b, avg(count(*)) OVER p AS a FROM sales GROUP BY 1, 2 WINDOW p AS (PARTITION BY country)) q WHERE n > 0.5 * b AND n > a
--> [country 4, month 13] (f0 > 0 ~3600 and f1 > 0 ~27300); count(*) - 0.5 * sum(count(*)) OVER (PARTITION BY country ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) {} delta 100; count(*) - avg(count(*)) OVER (PARTITION BY country) {} delta 1200

SELECT country, month, count(*) > lag(count(*)) OVER "By Month" AS grown FROM sales GROUP BY country, month WINDOW p AS (PARTITION BY country), "By Month" AS (p ORDER BY month) ORDER BY country, month
--> [country 4, month 13] true show f0 > 0 ~1200; count(*) - lag(count(*)) OVER (PARTITION BY country ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER (w) AS b FROM sales GROUP BY month WINDOW w AS (ORDER BY month ROWS 2 PRECEDING)) q WHERE n > b
--> KH101 count(*)

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER (w ORDER BY month) AS b FROM sales GROUP BY month WINDOW w AS (ORDER BY month)) q WHERE n > b
--> KH101 count(*)

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER v AS b FROM sales GROUP BY month WINDOW w AS (ORDER BY month)) q WHERE n > b
--> KH101 count(*)

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER w AS b FROM sales GROUP BY month WINDOW w AS (ORDER BY month), w AS ()) q WHERE n > b
--> KH101 count(*)

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER (w PARTITION BY month) AS b FROM sales GROUP BY month WINDOW w AS (ORDER BY month)) q WHERE n > b
--> KH101 count(*)

SELECT country, rank() OVER (p ORDER BY count(*) DESC) <= 3 AS top FROM sales GROUP BY country WINDOW p AS ()
--> [country 4] true first 3 falling ~730 priced of all; count(*) delta 100 in 0..100

SELECT month FROM (SELECT month, count(*) AS n, first_value(count(*)) OVER (w) AS b FROM sales GROUP BY month HAVING month > '2011-03-01' WINDOW w AS (ORDER BY month), v AS ()) q WHERE n > b
--> [month 9] f0 > 0 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY month) {} delta 100

SELECT country, month FROM (SELECT country, month, count(*) AS n, lag(count(*)) OVER (PARTITION BY country ORDER BY month) AS b FROM sales WHERE gift OR quantity > 5 GROUP BY country, month HAVING count(*) > 0 AND month >= '2011-03-01' AND country IN ('France', 'Norway')) q WHERE n > b
--> [country 2, month 10] where ("gift" = true OR "quantity" > 5) f0 > 0 ~1200; count(*) - lag(count(*)) OVER (PARTITION BY country ORDER BY month) {} delta 100

SELECT q FROM (SELECT date_trunc('quarter', month) AS q, count(*) AS n, avg(count(*)) OVER () AS b FROM sales GROUP BY 1 HAVING date_trunc('quarter', month) >= '2011-04-01') t WHERE n > b
--> [date_trunc('QUARTER', month) 3] where "month" >= date '2011-04-01' f0 > 0 ~1980; count(*) - avg(count(*)) OVER () {} delta 200

SELECT month, count(*) > lag(count(*)) OVER (ORDER BY month) AS grown FROM sales GROUP BY month HAVING month > '2011-03-01' OR month = '2011-01-01'
--> [month 10] true show f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month HAVING count(*) > 500 AND month > '2011-03-01') q WHERE n > b
--> KH204 lag(count(*))

SELECT country, month FROM (SELECT country, month, count(*) AS n, lag(count(*)) OVER (PARTITION BY country ORDER BY month) AS b FROM sales GROUP BY country, month HAVING month > '2011-03-01' OR country = 'France') q WHERE n > b
--> KH204 lag(count(*))

SELECT country FROM (SELECT country, count(*) AS n, avg(count(*)) OVER () AS b FROM sales GROUP BY country HAVING upper(country) LIKE 'F%') q WHERE n > b
--> KH204 avg(count(*))

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY ROLLUP (month) HAVING month > '2011-03-01') q WHERE n > b
--> KH101 count(*)

SELECT month, count(*) > lag(count(*)) OVER (ORDER BY month) AS grown FROM sales GROUP BY month HAVING month > '2011-03-01' AND count(*) > 0
--> KH204 count(*)

SELECT month, count(*) > lag(count(*)) OVER (ORDER BY month) AS grown FROM sales GROUP BY month HAVING month > '2011-03-01' AND count(1) > 0
--> [month 9] true show f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER () AS b FROM sales GROUP BY month HAVING extract(year FROM month) = 2011) q WHERE n > b
--> [month 12] f0 > 0 ~9120; count(*) - avg(count(*)) OVER () {} delta 1100

SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER () AS b FROM sales GROUP BY month HAVING extract(month FROM month) > 3) q WHERE n > b
--> KH204 avg(count(*))

SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER () AS b FROM sales GROUP BY month HAVING month + interval '1 month' > '2011-03-01') q WHERE n > b
--> KH204 avg(count(*))

SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER () AS b FROM sales GROUP BY month HAVING NOT (month <= date '2011-03-01' + interval '1 month')) q WHERE n > b
--> [month 8] f0 > 0 ~5920; count(*) - avg(count(*)) OVER () {} delta 700

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT month FROM (SELECT month, n, lag(n) OVER (ORDER BY month) AS b FROM m) q WHERE n > b
--> [month 13] f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

WITH m AS (SELECT country, month, sum(amount) AS s FROM sales GROUP BY country, month), y AS (SELECT country, month, s, lag(s, 12) OVER (PARTITION BY country ORDER BY month) AS before FROM m) SELECT country, month FROM y WHERE s > 1.2 * before
--> [country 4, month 13] f0 > 0 ~9500000; sum(amount) - 1.2 * lag(sum(amount), 12) OVER (PARTITION BY country ORDER BY month) {} delta 750000

SELECT month FROM (SELECT g.*, avg(g.n) OVER (ORDER BY g.month ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS b FROM (SELECT month, count(*) AS n FROM sales GROUP BY 1) AS g) q WHERE n > 1.5 * b
--> [month 13] f0 > 0 ~6000; count(*) - 1.5 * avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) {} delta 400

SELECT month, n > lag(n) OVER (ORDER BY month) AS grown FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g
--> [month 13] true show f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, n, lag(n) OVER (ORDER BY month) AS b FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g WHERE month >= '2011-03-01' AND month <> '2011-07-01') q WHERE n > b
--> [month 9] f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, n, lag(n) OVER (ORDER BY month) AS b FROM (SELECT month, count(*) AS n FROM sales WHERE gift OR quantity > 5 GROUP BY month HAVING month < '2011-10-01') g WHERE month >= '2011-03-01' OR month = '2011-01-01') q WHERE n > b
--> [month 8] where ("gift" = true OR "quantity" > 5) f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT q FROM (SELECT q, n, lag(n) OVER (ORDER BY q) AS b FROM (SELECT date_trunc('quarter', month) AS q, count(*) AS n FROM sales GROUP BY q) g WHERE q < '2011-10-01') t WHERE n > b
--> [date_trunc('QUARTER', month) 4] where "month" < date '2011-10-01' f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY date_trunc('QUARTER', month)) {} delta 100

SELECT month FROM (SELECT month, n - b AS growth FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) g) q WHERE growth > 500
--> [month 13] f0 > 500 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, n, lag(n) OVER w AS b FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g WINDOW w AS (ORDER BY month)) q WHERE n > b
--> [month 13] f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, n, lag(n) OVER (ORDER BY month) AS b FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g WHERE n > 500) q WHERE n > b
--> KH204 lag(n)

SELECT country FROM (SELECT country, n, avg(n) OVER () AS b FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) g WHERE upper(country) LIKE 'F%') q WHERE n > b
--> KH204 avg(n)

SELECT month FROM (SELECT month, n, lag(n) OVER (ORDER BY month) AS b FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g LIMIT 3) q WHERE n > b
--> KH101 count(*)

SELECT month FROM (SELECT DISTINCT month, n, lag(n) OVER (ORDER BY month) AS b FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g) q WHERE n > b
--> KH101 count(*)

SELECT t FROM (SELECT sum(n) AS s, sum(sum(n)) OVER () AS t FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q) r WHERE t > 500
--> KH101 count(*)

SELECT month FROM (SELECT month, n, lag(n) OVER (ORDER BY month) AS b FROM (SELECT month, count(*) AS n, generate_series(1, 3) AS g FROM sales GROUP BY month) g) q WHERE n > b
--> KH101 count(*)

SELECT month FROM (SELECT month, n, lag(n) OVER (ORDER BY month) AS b FROM (SELECT month, country, count(*) AS n FROM sales GROUP BY month, country) g ORDER BY country) q WHERE n > b
--> KH101 count(*)

SELECT country FROM (SELECT country, count(*) AS n, avg(count(*)) OVER () AS b FROM sales GROUP BY country HAVING upper(country) IN ('FRANCE', 'NORWAY')) q WHERE n > b
--> KH204 avg(count(*))

SELECT month FROM (SELECT month, n, lag(n) OVER (ORDER BY month) AS b FROM (SELECT month, count(*) AS n, json_to_recordset(json_agg(quantity)) AS r FROM sales GROUP BY month) g) q WHERE n > b
--> KH101 count(*)

SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS a FROM sales GROUP BY month) q WHERE n > 1.2 * a
--> [month 13] f0 > 0 ~262500; count(*) - 1.2 * avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) {} delta 29000

SELECT month, avg(count(*)) OVER (ORDER BY month ROWS 11 PRECEDING) > 3000 AS busy FROM sales GROUP BY month
--> [month 13] true show f0 > 83160000 ~8316000; avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 11 PRECEDING AND CURRENT ROW) {} delta 2772000

SELECT country, month FROM (SELECT country, month, sum(amount) AS s, avg(sum(amount)) OVER (PARTITION BY country ORDER BY month ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING) AS a FROM sales GROUP BY 1, 2) q WHERE s < 0.8 * a
--> [country 4, month 13] f0 <= -1 ~120000000; sum(amount) - 0.8 * avg(sum(amount)) OVER (PARTITION BY country ORDER BY month ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING) {} delta 11250000

SELECT month FROM (SELECT month, avg(sum(amount)) OVER (ORDER BY month ROWS 2 PRECEDING) AS short, avg(sum(amount)) OVER (ORDER BY month ROWS 8 PRECEDING) AS long FROM sales GROUP BY month) q WHERE short > 1.1 * long
--> [month 13] f0 > 0 ~14868000000; avg(sum(amount)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) - 1.1 * avg(sum(amount)) OVER (ORDER BY month ROWS BETWEEN 8 PRECEDING AND CURRENT ROW) {} delta 798000000

SELECT month FROM (SELECT month, count(DISTINCT customer_id) AS n, lag(count(DISTINCT customer_id)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n < 0.8 * b
--> [month 13] f0 <= -1 ~50; count(DISTINCT customer_id) - 0.8 * lag(count(DISTINCT customer_id)) OVER (ORDER BY month) {} delta 5

SELECT month FROM sales GROUP BY month HAVING count(DISTINCT customer_id) > (SELECT avg(n) FROM (SELECT month, count(DISTINCT customer_id) AS n FROM sales GROUP BY month) q)
--> [month 13] f0 > 0 ~96; count(DISTINCT customer_id) - avg(count(DISTINCT customer_id)) OVER () {} delta 12

SELECT month FROM (SELECT month, count(DISTINCT customer_id) AS n, sum(count(DISTINCT customer_id)) OVER (ORDER BY month ROWS 2 PRECEDING) AS w FROM sales GROUP BY month) q WHERE w > 900
--> [month 13] f0 > 900 ~90; sum(count(DISTINCT customer_id)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) {} delta 1

SELECT month FROM sales GROUP BY month HAVING count(DISTINCT customer_id) > 0.1 * (SELECT count(DISTINCT customer_id) FROM sales)
--> KH107 count(DISTINCT

SELECT country FROM (SELECT country, count(DISTINCT customer_id) AS n, avg(count(DISTINCT customer_id)) OVER () AS w FROM sales GROUP BY country) q WHERE n > w
--> KH204

SELECT month FROM (SELECT month, count(DISTINCT stock_code) AS n, lag(count(DISTINCT stock_code)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n > b
--> KH204

SELECT month FROM (SELECT month, sum(amount) AS s, max(sum(amount)) OVER () AS best FROM sales GROUP BY month) q WHERE s > 0.5 * best
--> [month 13] f0 > 0 ~4400000; sum(amount) - 0.5 * max(sum(amount)) OVER () {} delta 300000

SELECT month FROM sales GROUP BY month HAVING count(*) < 0.5 * (SELECT max(n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q)
--> [month 13] f0 <= -1 ~3000; count(*) - 0.5 * max(count(*)) OVER () {} delta 200

SELECT country, month FROM (SELECT country, month, count(*) AS n, min(count(*)) OVER (PARTITION BY country ORDER BY month ROWS 4 PRECEDING) AS least FROM sales GROUP BY 1, 2) q WHERE least > 300
--> [country 4, month 13] f0 > 300 ~30; min(count(*)) OVER (PARTITION BY country ORDER BY month ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) {} delta 100

SELECT country FROM (SELECT country, count(*) AS n, max(count(*)) OVER () - min(count(*)) OVER () AS w FROM sales GROUP BY country) q WHERE n > w
--> [country 4] f0 > 0 ~2900; count(*) - max(count(*)) OVER () + min(count(*)) OVER () {} delta 200

SELECT month FROM (SELECT month, count(*) AS n, max(2 * count(*) - 5) OVER () AS w FROM sales GROUP BY month) q WHERE n > w
--> KH204 n

SELECT month FROM (SELECT month, count(*) AS n, max(-count(*)) OVER () AS w FROM sales GROUP BY month) q WHERE n > w
--> KH204 n

SELECT month FROM (SELECT month, avg(amount) AS n, max(avg(amount)) OVER () AS w FROM sales GROUP BY month) q WHERE n > 0.9 * w
--> KH204

SELECT month FROM (SELECT month, count(*) AS n, max(count(*)) OVER () AS best FROM sales GROUP BY month) q WHERE n = best
--> [month 13] true first 1 falling ~1200 priced; count(*) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING count(*) = (SELECT max(n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q)
--> [month 13] true first 1 falling ~1200 priced; count(*) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING count(*) > (SELECT max(n) FROM (SELECT month, max(quantity) AS n FROM sales GROUP BY month) q)
--> KH204 (SELECT
-- # All conditions around a grouped subquery are one formula, with predicates of the subquery

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n > 1000 AND b > 1000
--> [month 13] (f0 > 1000 ~100 and f1 > 1000 ~100); count(*) delta 100 in 0..100; lag(count(*)) OVER (ORDER BY month) {} delta 1

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n > 1000 OR NOT b > 1000
--> [month 13] (f0 > 1000 ~100 or f1 <= 1000 ~100); count(*) delta 100 in 0..100; lag(count(*)) OVER (ORDER BY month) {} delta 1

SELECT month FROM (SELECT month, count(*) > 1000 AS busy, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE busy AND n > b + 100
--> [month 13] (f0 > 1000 ~100 and f1 > 100 ~1200); count(*) delta 100 in 0..100; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

WITH q AS (SELECT month, count(*) > 1000 AS busy, lag(count(*)) OVER (ORDER BY month) > 1000 AS was_busy FROM sales GROUP BY month) SELECT month, busy FROM q WHERE busy AND NOT was_busy
--> [month 13] (f0 > 1000 ~100 and f1 <= 1000 ~100); count(*) delta 100 in 0..100; lag(count(*)) OVER (ORDER BY month) {} delta 1

-- # Totals that stand around a grouped subquery, in WITH, and in joins of one row

WITH s AS (SELECT month, sum(amount) AS a FROM sales GROUP BY month) SELECT month FROM s WHERE a > (SELECT avg(a) FROM s)
--> [month 13] f0 > 0 ~15600000; sum(amount) - avg(sum(amount)) OVER () {} delta 1800000

WITH s AS (SELECT month, sum(amount) AS a FROM sales GROUP BY month), t AS (SELECT avg(a) AS a FROM s) SELECT s.month FROM s, t WHERE s.a > 1.5 * t.a AND s.a > 5000
--> [month 13] (f0 > 0 ~31200000 and f1 > 500000 ~50000); sum(amount) - 1.5 * avg(sum(amount)) OVER () {} delta 3450000; sum(amount) delta 150000 in -100000..150000

WITH s AS (SELECT month, sum(amount) AS a FROM sales GROUP BY month HAVING count(*) > 5) SELECT month FROM s WHERE a > (SELECT avg(a) FROM s)
--> KH101 sum(amount)

WITH s AS (SELECT month, sum(amount) AS a FROM sales GROUP BY month) SELECT month FROM s WHERE a > (SELECT avg(a) FROM s WHERE month > '2011-01-01')
--> KH101 sum(amount)

WITH s AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT month FROM s WHERE n > 2 * (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM s)
--> [month 13] f0 > 0 ~6800; count(*) - 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

WITH s AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT month FROM s WHERE n > (SELECT sum(n) / count(*) FROM s)
--> [month 13] f0 > 0 ~9880; count(*) - 0.0769230769231 * sum(count(*)) OVER () {} delta 1200

SELECT country FROM (SELECT country, sum(amount) AS a FROM sales WHERE gift GROUP BY country) s WHERE a > 0.2 * (SELECT sum(amount) FROM sales WHERE gift) OR NOT a > 1000
--> KH206 a else [country 4] where "gift" = true (f0 > 0 ~5500000 or (f1 <= 100000 ~10000 and f2 > 49 ~5)); sum(amount) - 0.2 * sum(sum(amount)) OVER () {} delta 600000; sum(amount) delta 150000 in -100000..150000; count(DISTINCT (customer_id, month)) FILTER (WHERE amount IS NOT NULL) delta 1

SELECT country FROM (SELECT country, sum(amount) AS a FROM sales WHERE gift GROUP BY country) s WHERE a > 0.2 * (SELECT sum(amount) FROM sales)
--> [country 4] f0 > 0 ~12000000; sum(amount) FILTER (WHERE gift) - 0.2 * sum(sum(amount)) OVER () {} delta 900000

SELECT country, month FROM (SELECT country, month, sum(amount) AS a FROM sales GROUP BY country, month) s WHERE a > 0.4 * (SELECT sum(amount) FROM sales t WHERE t.country = s.country)
--> [country 4, month 13] f0 > 0 ~9500000; sum(amount) - 0.4 * sum(sum(amount)) OVER (PARTITION BY "country") {} delta 450000

SELECT country, month FROM (SELECT country, month AS country2, month, sum(amount) AS a FROM sales GROUP BY country, month) s WHERE a > 0.4 * (SELECT sum(amount) FROM sales t WHERE t.country = s.country2)
--> KH101 sum(amount)

SELECT country, a > 0.4 * (SELECT sum(amount) FROM sales) AS large FROM (SELECT country, sum(amount) AS a FROM sales GROUP BY country) s
--> [country 4] true show f0 > 0 ~6000000; sum(amount) - 0.4 * sum(sum(amount)) OVER () {} delta 450000

WITH t AS (SELECT count(*) AS n, sum(amount) AS a FROM sales) SELECT country FROM sales GROUP BY country HAVING count(*) > 0.2 * (SELECT n FROM t) AND sum(amount) > (SELECT 0.2 * a FROM t)
--> [country 4] (f0 > 0 ~9500 and f1 > 0 ~14000000); count(*) - 0.2 * sum(count(*)) OVER () {} delta 400; sum(amount) - 0.2 * sum(sum(amount)) OVER () {} delta 600000

SELECT s.country FROM sales s CROSS JOIN (SELECT sum(amount) AS a FROM sales) t GROUP BY s.country, t.a HAVING sum(s.amount) > 0.25 * t.a
--> [country 4] f0 > 0 ~4400000; sum(amount) - 0.25 * sum(sum(amount)) OVER () {} delta 450000

SELECT country FROM sales s JOIN (SELECT sum(amount) AS total FROM sales) t ON true GROUP BY country HAVING sum(amount) > 0.25 * max(total)
--> [country 4] f0 > 0 ~4400000; sum(amount) - 0.25 * sum(sum(amount)) OVER () {} delta 450000

SELECT country FROM (SELECT sum(amount) AS total FROM sales) t, sales s GROUP BY t.total, country HAVING sum(amount) > 0.25 * total
--> [country 4] f0 > 0 ~4400000; sum(amount) - 0.25 * sum(sum(amount)) OVER () {} delta 450000

SELECT country FROM sales s JOIN (SELECT sum(amount) AS total FROM sales) t ON t.total > s.amount GROUP BY country HAVING count(*) > 100
--> KH107 sum(amount)

SELECT country FROM sales s CROSS JOIN (SELECT sum(amount) AS total FROM sales HAVING count(*) > 5) t GROUP BY country HAVING count(*) > 100
--> KH107 sum(amount)

SELECT country FROM sales s CROSS JOIN (SELECT count(*) AS amount FROM sales) t GROUP BY country HAVING sum(amount) > 100
--> KH107 count(*)

-- # Totals over fewer rows than the question's, and shown beside the threshold

SELECT country FROM sales GROUP BY country HAVING count(*) FILTER (WHERE gift) > 0.25 * (SELECT count(*) FILTER (WHERE gift) FROM sales)
--> [country 4] f0 > 0 ~2760; count(*) FILTER (WHERE gift) - 0.25 * sum(count(*) FILTER(WHERE gift)) OVER () {} delta 300

SELECT country FROM sales s WHERE quantity > 3 GROUP BY country HAVING count(*) > 0.25 * (SELECT count(*) FROM sales t WHERE t.gift AND t.quantity > 3)
--> [country 4] where "quantity" > 3 f0 > 0 ~6800; count(*) - 0.25 * sum(count(*) FILTER(WHERE (gift))) OVER () {} delta 500

SELECT country FROM sales WHERE gift GROUP BY country HAVING sum(amount) > 0.25 * (SELECT sum(amount) FILTER (WHERE quantity > 3) FROM sales WHERE gift AND amount > 5)
--> [country 4] where "gift" = true f0 > 0 ~10400000; sum(amount) - 0.25 * sum(sum(amount) FILTER(WHERE (quantity > 3) AND (amount > 5))) OVER () {} delta 750000

SELECT country FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE n > 0.25 * (SELECT count(*) FROM sales WHERE country = 'France')
--> [country 4] f0 > 0 ~6800; count(*) - 0.25 * sum(count(*) FILTER(WHERE (country = 'France'))) OVER () {} delta 500

SELECT country FROM sales WHERE quantity > 3 GROUP BY country HAVING count(*) > 0.25 * (SELECT count(*) FROM sales WHERE quantity > 5)
--> [country 4] f0 > 0 ~6800; count(*) FILTER (WHERE quantity > 3) - 0.25 * sum(count(*) FILTER(WHERE (quantity > 5))) OVER () {} delta 500

-- # Shares within sums and multiples of constants, and rounded

SELECT country, month FROM (SELECT country, month, sum(amount) AS a, lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) AS b FROM sales GROUP BY 1, 2) q WHERE a / nullif(b, 0) - 1 > 0.25
--> [country 4, month 13] ((f0 > 0 ~20400000 and f1 > 0 ~3200000) or (f2 <= -1 ~20400000 and f3 <= -1 ~3200000)); sum(amount) - 1.25 * lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) {} delta 600000; lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) {} delta 1; sum(amount) - 1.25 * lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) {} delta 600000; lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) {} delta 1

SELECT country, month FROM (SELECT country, month, sum(amount) AS a, lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) AS b FROM sales GROUP BY 1, 2) q WHERE 100 * (1 - a / nullif(b, 0)) >= 25
--> [country 4, month 13] ((f0 <= 0 ~16000000 and f1 > 0 ~3200000) or (f2 > -1 ~16000000 and f3 <= -1 ~3200000)); sum(amount) - 0.75 * lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) {} delta 600000; lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) {} delta 1; sum(amount) - 0.75 * lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) {} delta 600000; lag(sum(amount)) OVER (PARTITION BY country ORDER BY month) {} delta 1

SELECT country FROM sales GROUP BY country HAVING round(sum(amount) / (SELECT sum(amount) FROM sales), 1) >= 0.2
--> [country 4] ((f0 > -1 ~56000000 and f1 > 0 ~6300000) or (f0 <= 0 ~56000000 and f1 <= -1 ~6300000)); sum(amount) - 0.15 * sum(sum(amount)) OVER () {} delta 2550000; sum(sum(amount)) OVER () {} delta 150000

SELECT country FROM sales GROUP BY country HAVING round(100.0 * count(*) / (SELECT count(*) FROM sales), 1) BETWEEN 20 AND 30
--> [country 4] (f0 > -1 ~3800000 and f1 <= -1 ~3800000); count(*) - 0.1995 * sum(count(*)) OVER () {} delta 160100; count(*) - 0.3005 * sum(count(*)) OVER () {} delta 139900

SELECT country FROM sales GROUP BY country HAVING round(100 * (sum(amount) / (SELECT sum(amount) FROM sales) - 1)) <> -85
--> [country 4] ((f0 > 0 ~980000000 and f1 > 0 ~11000000) or (f0 <= -1 ~980000000 and f1 <= -1 ~11000000) or (f2 <= 0 ~980000000 and f1 > 0 ~11000000) or (f2 > -1 ~980000000 and f1 <= -1 ~11000000)); sum(amount) - 0.155 * sum(sum(amount)) OVER () {} delta 25350000; sum(sum(amount)) OVER () {} delta 150000; sum(amount) - 0.145 * sum(sum(amount)) OVER () {} delta 25650000

SELECT country FROM sales GROUP BY country HAVING 100 * (count(*) / (SELECT count(*) FROM sales)) > 5
--> KH204 count(*)

SELECT country FROM sales GROUP BY country HAVING round(100 * count(*) / (SELECT count(*) FROM sales), 1) > 5
--> KH204 100

SELECT country FROM sales GROUP BY country HAVING round((count(*)::float8 / (SELECT count(*) FROM sales))) > 5
--> KH204 count(*)::float8

SELECT country FROM sales GROUP BY country HAVING sum(amount) / (SELECT sum(amount) FROM sales) + count(*) > 5
--> KH204 sum(amount)

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER (ORDER BY month ROWS -1 PRECEDING) AS b FROM sales GROUP BY month) q WHERE n > 0.4 * b
--> KH204 n

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER (ORDER BY month GROUPS BETWEEN 1 PRECEDING AND -1 FOLLOWING) AS b FROM sales GROUP BY month) q WHERE n > 0.4 * b
--> KH204 n

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER (ORDER BY month RANGE BETWEEN NULL PRECEDING AND CURRENT ROW) AS b FROM sales GROUP BY month) q WHERE n > 0.4 * b
--> KH204 n

SELECT month FROM sales GROUP BY 1.5 HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH100 1.5

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY 1.5) q WHERE n > b
--> KH101 count(*)

-- NULL where a neighbour is missing, beside NULL, and for a sum over rows that there cannot be.
SELECT month, n > b AS up FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q
--> [month 13] true show f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month, coalesce(NOT (n > b), true) AS calm FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q
--> [month 13] true show f0 <= 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month, (n > b) IS NULL AS first FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q
--> [month 13] true show f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month, (n > b) IS FALSE AND n > 5000 AS calm FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q
--> [month 13] true show f0 > 0 ~1200 show f1 > 5000 ~500; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100; count(*) delta 100 in 0..100

SELECT month, n IS DISTINCT FROM b AS moved FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q
--> KH101 count(*)

SELECT month, count(*) > lag(count(*), 20) OVER (ORDER BY month) AS up FROM sales GROUP BY month
--> [month 13] true show null;

SELECT month, coalesce(count(*) - lag(count(*)) OVER (ORDER BY month), 0) > 500 AS up FROM sales GROUP BY month
--> [month 13] true show f0 > 500 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT country, coalesce(sum(amount) > NULL, true) AS big, count(*) NOT BETWEEN NULL AND 100 AS odd FROM sales GROUP BY country
--> [country 4] true show null show f0 > 100 ~10 else null; count(*) delta 100 in 0..100

SELECT country, (count(*) > NULL) IS NULL AS big, (sum(amount) > NULL) IS NOT NULL AS known FROM sales GROUP BY country
--> [country 4] true show null show null;

SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0.1 * (SELECT sum(amount) FROM sales WHERE quantity > 5 AND quantity < 3)
--> [country 4] false;

SELECT country, sum(amount) > 0.1 * (SELECT sum(amount) FROM sales WHERE country = 'Atlantis') AS big FROM sales GROUP BY country
--> [country 4] true show null;

SELECT country FROM sales GROUP BY country HAVING sum(amount) > (SELECT coalesce(sum(amount), 0) FROM sales WHERE country = 'Atlantis')
--> [country 4] f0 > 0 ~5100000; sum(amount) - coalesce(sum(sum(amount) FILTER(WHERE (country = 'Atlantis'))) OVER (), 0) {} delta 300000

SELECT country FROM sales GROUP BY country HAVING count(*) > (SELECT count(*) FROM sales WHERE country = 'Atlantis') + 500
--> [country 4] f0 > 500 ~3400; count(*) - sum(count(*) FILTER(WHERE (country = 'Atlantis'))) OVER () {} delta 200

SELECT month FROM sales GROUP BY month HAVING count(*) > 2 * (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM (SELECT count(*) AS n FROM sales GROUP BY month) g)
--> [month 13] f0 > 0 ~6800; count(*) - 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

SELECT month FROM sales GROUP BY month HAVING count(*) < 0.5 * (SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g)
--> [month 13] f0 <= -1 ~3400; count(*) - 0.5 * percentile_disc(0.25) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

SELECT month FROM sales GROUP BY month HAVING sum(amount) >= (SELECT median(n) FROM (SELECT month, sum(amount) AS n FROM sales GROUP BY month) g)
--> [month 13] f0 > -1 ~6400000; sum(amount) - percentile_cont(0.5) WITHIN GROUP (ORDER BY sum(amount)) OVER () {} delta 300000

SELECT month FROM sales GROUP BY month HAVING count(DISTINCT customer_id) > (SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(DISTINCT customer_id) AS n FROM sales GROUP BY month) g)
--> [month 13] f0 > 0 ~38; count(DISTINCT customer_id) - percentile_cont(0.9) WITHIN GROUP (ORDER BY count(DISTINCT customer_id)) OVER () {} delta 2

SELECT month FROM sales GROUP BY month HAVING count(*) >= (SELECT percentile_disc(1) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g)
--> [month 13] f0 > -1 ~1800; count(*) - percentile_disc(1) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 100

SELECT month FROM sales GROUP BY month HAVING count(*) BETWEEN (SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g) AND (SELECT percentile_cont(0.75) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g)
--> [month 13] (f0 > -1 ~9400 and f1 <= 0 ~9400); count(*) - percentile_cont(0.25) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200; count(*) - percentile_cont(0.75) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

SELECT month FROM sales GROUP BY month HAVING 1.0 * count(*) / (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g) > 2
--> [month 13] (f0 > 0 ~15800 and f1 > 0 ~7400); count(*) - 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200; percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

SELECT month FROM (SELECT month, sum(amount) AS n, min(sum(amount)) OVER () AS w FROM sales GROUP BY month) q WHERE n / nullif(w, 0) > 2
--> [month 13] ((f0 > 0 ~14000000 and f1 > 0 ~6300000) or (f0 <= -1 ~14000000 and f1 <= -1 ~6300000)); sum(amount) - 2 * min(sum(amount)) OVER () {} delta 150000; min(sum(amount)) OVER () {} delta 150000

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT month FROM m WHERE n > 2 * (SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY n) FROM m)
--> [month 13] f0 > 0 ~6600; count(*) - 2 * percentile_cont(0.9) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), s AS (SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY n) AS p FROM m) SELECT month FROM m CROSS JOIN s WHERE n > s.p
--> [month 13] f0 > 0 ~4000; count(*) - percentile_cont(0.9) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

SELECT month, count(*) > 2 * (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g) AS big FROM sales GROUP BY month
--> [month 13] true show f0 > 0 ~6800; count(*) - 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), s AS (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS med FROM m) SELECT month FROM m, s WHERE n > 2 * med AND med >= 1000
--> [month 13] (f0 > 0 ~360 and f1 > 1999 ~200); count(*) - 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200; percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

SELECT month FROM sales GROUP BY month HAVING count(*) > (SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g)
--> KH204 (SELECT

SELECT month FROM sales GROUP BY month HAVING count(*) > (SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY n DESC) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g)
--> KH204 (SELECT

SELECT month FROM sales GROUP BY month HAVING count(*) > (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) - percentile_cont(0.25) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g)
--> [month 13] f0 > 0 ~39200; count(*) - percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER () + percentile_cont(0.25) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 1600

SELECT month FROM (SELECT month, count(*) AS n, percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER (ORDER BY month) AS w FROM sales GROUP BY month) q WHERE n > 2 * w
--> KH204 n

SELECT month FROM sales GROUP BY month HAVING sum(amount) > (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM (SELECT month, max(amount) AS n FROM sales GROUP BY month) g)
--> KH204 (SELECT

SELECT country FROM sales GROUP BY country HAVING sum(amount) > (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM sales)
--> KH107 percentile_cont(0.5)

SELECT country FROM sales GROUP BY country HAVING sum(amount) > (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY size) FROM (SELECT country, sum(amount) AS size FROM sales GROUP BY country) AS sizes)
--> [country 4] f0 > 0 ~5200000; sum(amount) - percentile_cont(0.5) WITHIN GROUP (ORDER BY sum(amount)) OVER () {} delta 300000

SELECT month FROM sales GROUP BY month HAVING count(*) > (SELECT avg(n) + 2 * stddev(n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) g)
--> [month 13] f0 > 0 ~67600; count(*) - avg(count(*)) OVER () - 2 * stddev(count(*)) OVER () {} delta 2800

SELECT month FROM (SELECT month, sum(amount) AS s, avg(sum(amount)) OVER () AS a, stddev_pop(sum(amount)) OVER () AS d FROM sales GROUP BY month) q WHERE s < a - d
--> [month 13] f0 <= -1 ~67600000; sum(amount) - avg(sum(amount)) OVER () + stddev_pop(sum(amount)) OVER () {} delta 7500000

SELECT month FROM (SELECT month, sum(amount) AS s, avg(sum(amount)) OVER () AS a, stddev_samp(sum(amount)) OVER () AS d FROM sales GROUP BY month) q WHERE s > a + 2 * d AND a >= 100000
--> [month 13] (f0 > 0 ~23400000 and f1 > 129999999 ~13000000); sum(amount) - avg(sum(amount)) OVER () - 2 * stddev_samp(sum(amount)) OVER () {} delta 4200000; avg(sum(amount)) OVER () {} delta 150000

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), s AS (SELECT avg(n) AS a, stddev(n) AS d FROM m) SELECT month FROM m, s WHERE (n - a) / d > 2
--> [month 13] f0 > 0 ~67600; count(*) - avg(count(*)) OVER () - 2 * stddev(count(*)) OVER () {} delta 2800

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), z AS (SELECT month, n, avg(n) OVER () AS mean, stddev(n) OVER () AS sd FROM m) SELECT month FROM z WHERE (n - mean) / sd > 2
--> [month 13] f0 > 0 ~67600; count(*) - avg(count(*)) OVER () - 2 * stddev(count(*)) OVER () {} delta 2800

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), z AS (SELECT month, n, stddev(n) OVER () AS sd FROM m) SELECT month FROM z WHERE n > 3 * sd
--> [month 13] f0 > 0 ~7000; count(*) - 3 * stddev(count(*)) OVER () {} delta 400

SELECT month FROM (SELECT month, (sum(amount) - avg(sum(amount)) OVER ()) / nullif(stddev(sum(amount)) OVER (), 0) AS z FROM sales GROUP BY month) q WHERE abs(z) >= 2
--> [month 13] (f0 > -1 ~234000000 or f1 <= 0 ~234000000); sum(amount) - avg(sum(amount)) OVER () - 2 * stddev(sum(amount)) OVER () {} delta 4200000; sum(amount) - avg(sum(amount)) OVER () + 2 * stddev(sum(amount)) OVER () {} delta 11400000

SELECT month FROM (SELECT month, (sum(amount) - avg(sum(amount)) OVER ()) / stddev(sum(amount)) OVER () AS z FROM sales GROUP BY month) q WHERE z BETWEEN -1 AND 1.5
--> [month 13] (f0 > -1 ~161200000 and f1 <= 0 ~395200000); sum(amount) - avg(sum(amount)) OVER () + stddev(sum(amount)) OVER () {} delta 7500000; sum(amount) - avg(sum(amount)) OVER () - 1.5 * stddev(sum(amount)) OVER () {} delta 7200000

SELECT country, month FROM (SELECT country, month, (count(*) - avg(count(*)) OVER (PARTITION BY country)) / stddev(count(*)) OVER (PARTITION BY country) AS z FROM sales GROUP BY country, month) q WHERE round(z, 1) > 2
--> [country 4, month 13] f0 > -1 ~1404000; count(*) - avg(count(*)) OVER (PARTITION BY country) - 2.05 * stddev(count(*)) OVER (PARTITION BY country) {} delta 58600

SELECT country, month FROM (SELECT country, month, count(*) AS n, avg(count(*)) OVER (PARTITION BY country) AS a, stddev(count(*)) OVER (PARTITION BY country) AS d FROM sales GROUP BY country, month) q WHERE n NOT BETWEEN a - 2 * d AND a + 2 * d
--> [country 4, month 13] (f0 <= -1 ~156000 or f1 > 0 ~156000); count(*) - avg(count(*)) OVER (PARTITION BY country) + 2 * stddev(count(*)) OVER (PARTITION BY country) {} delta 7600; count(*) - avg(count(*)) OVER (PARTITION BY country) - 2 * stddev(count(*)) OVER (PARTITION BY country) {} delta 2800

SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER w AS a, stddev(count(*)) OVER w AS d FROM sales GROUP BY month WINDOW w AS (ORDER BY month ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING)) q WHERE n > a + 3 * d
--> [month 13] f0 > 0 ~936000; count(*) - avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING) - 3 * stddev(count(*)) OVER (ORDER BY month ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING) {} delta 12000

SELECT month FROM (SELECT month, (count(*) - avg(count(*)) OVER w) / stddev(count(*)) OVER w AS z FROM sales GROUP BY month WINDOW w AS (ORDER BY month ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING)) q WHERE z > 3
--> KH204 z

SELECT month FROM (SELECT month, (count(*) - avg(count(*)) OVER ()) / stddev(count(*)) OVER () AS z FROM sales GROUP BY month) q WHERE z >= 0
--> KH204 z

SELECT month FROM (SELECT month, (count(*) - avg(count(*)) OVER ()) / stddev(count(*)) OVER () AS z FROM sales GROUP BY month) q WHERE z > 0
--> [month 13] f0 > 0 ~9880; count(*) - avg(count(*)) OVER () {} delta 1200

SELECT month FROM (SELECT month, count(*) / stddev(count(*)) OVER () AS z FROM sales GROUP BY month) q WHERE z > 1
--> KH204 z

SELECT month FROM (SELECT month, count(*) AS n, stddev(count(*)) OVER (PARTITION BY month) AS d FROM sales GROUP BY month) q WHERE n > d
--> KH204 n

SELECT country, month FROM (SELECT country, month, count(*) AS n, stddev(count(*)) OVER (PARTITION BY country, extract(year FROM month)) AS d FROM sales GROUP BY country, month) q WHERE n > d
--> [country 4, month 13] f0 > 0 ~3600; count(*) - stddev(count(*)) OVER (PARTITION BY country, EXTRACT(YEAR FROM month)) {} delta 200

SELECT country FROM sales GROUP BY country HAVING avg(amount) > (SELECT avg(a) + stddev(a) FROM (SELECT country, avg(amount) AS a FROM sales GROUP BY country) q)
--> KH204

SELECT country FROM sales WHERE gift GROUP BY country HAVING 2 * (SELECT stddev(amount) FROM sales WHERE gift) < count(*)
--> KH107 stddev(amount)

SELECT country, month FROM sales s GROUP BY country, month HAVING count(*) > 2 * (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM (SELECT month, count(*) AS n FROM sales t WHERE t.country = s.country GROUP BY month) g)
--> [country 4, month 13] f0 > 0 ~6800; count(*) - 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY count(*)) OVER (PARTITION BY "country") {} delta 200

SELECT country, month FROM sales s GROUP BY country, month HAVING count(*) > 2 * (SELECT avg(n) FROM (SELECT country AS c, month, count(*) AS n FROM sales GROUP BY country, month) g WHERE g.c = s.country)
--> [country 4, month 13] f0 > 0 ~10400; count(*) - 2 * avg(count(*)) OVER (PARTITION BY "country") {} delta 1100

SELECT country, month FROM sales s GROUP BY country, month HAVING count(*) > 2 * (SELECT avg(n) FROM (SELECT country AS c, month, count(*) AS n FROM sales GROUP BY country, month) g WHERE g.c = s.month)
--> KH107 avg(n)

SELECT country, month FROM sales s GROUP BY country, month HAVING count(*) > 2 * (SELECT avg(n) FROM (SELECT country, month, count(*) AS n FROM sales GROUP BY country, month) g WHERE g.n = s.month)
--> KH107 avg(n)

WITH m AS (SELECT country, month, count(*) AS n FROM sales GROUP BY country, month) SELECT country, month FROM m WHERE n > (SELECT avg(x.n) + stddev(x.n) FROM m x WHERE x.month = m.month)
--> [country 4, month 13] f0 > 0 ~17600; count(*) - avg(count(*)) OVER (PARTITION BY "month") - stddev(count(*)) OVER (PARTITION BY "month") {} delta 600

WITH m AS (SELECT country, month, count(*) AS n FROM sales GROUP BY country, month) SELECT country, month FROM m WHERE n > (SELECT avg(x.n) FROM m x WHERE x.month > m.month)
--> KH101 count(*)

SELECT country, month FROM sales s GROUP BY country, month HAVING count(*) > 2 * (SELECT avg(n) FROM (SELECT month, count(*) AS n FROM sales t WHERE t.country = s.country AND t.gift GROUP BY month) g)
--> [country 4, month 13] f0 > 0 ~23400; count(*) - 2 * avg(count(*) FILTER(WHERE (gift))) OVER (PARTITION BY "country") {} delta 1500

-- # Totals over more or other rows than the question's WHERE leaves

SELECT country FROM sales WHERE gift AND quantity > 3 GROUP BY country HAVING count(*) > 0.05 * (SELECT count(*) FROM sales WHERE quantity > 3)
--> [country 4] where "quantity" > 3 f0 > 0 ~22000; count(*) FILTER (WHERE gift) - 0.05 * sum(count(*)) OVER () {} delta 2100

SELECT country FROM sales WHERE gift AND quantity > 3 GROUP BY country HAVING count(*) > 0.05 * (SELECT count(*) FROM sales)
--> [country 4] f0 > 0 ~22000; count(*) FILTER (WHERE gift AND quantity > 3) - 0.05 * sum(count(*)) OVER () {} delta 2100

SELECT country FROM sales WHERE gift OR quantity > 3 GROUP BY country HAVING sum(amount) FILTER (WHERE quantity < 9 OR gift) > 0.05 * (SELECT sum(amount) FROM sales)
--> [country 4] f0 > 0 ~32000000; sum(amount) FILTER (WHERE (quantity < 9 OR gift) AND (gift OR quantity > 3)) - 0.05 * sum(sum(amount)) OVER () {} delta 3150000

SELECT s.country FROM sales s WHERE s.gift AND NOT s.quantity BETWEEN 3 AND 5 GROUP BY 1 HAVING count(s.amount) > 0.05 * (SELECT count(*) FROM sales)
--> [country 4] f0 > 0 ~22000; count(amount) FILTER (WHERE s.gift AND NOT s.quantity BETWEEN 3 AND 5) - 0.05 * sum(count(*)) OVER () {} delta 2100

SELECT country FROM sales WHERE gift GROUP BY country HAVING 100.0 * count(*) / (SELECT count(*) FROM sales) >= 5
--> [country 4] f0 > -1 ~22000; count(*) FILTER (WHERE gift) - 0.05 * sum(count(*)) OVER () {} delta 2100

SELECT country FROM sales WHERE gift GROUP BY country HAVING count(*) > 0.05 * (SELECT count(*) FROM sales) AND sum(amount) > 0.1 * (SELECT sum(amount) FROM sales WHERE gift) AND count(*) > 50
--> [country 4] (f0 > 0 ~56000 and f1 > 0 ~30000000 and f2 > 50 ~5); count(*) FILTER (WHERE gift) - 0.05 * sum(count(*)) OVER () {} delta 2100; sum(amount) FILTER (WHERE gift) - 0.1 * sum(sum(amount) FILTER(WHERE (gift))) OVER () {} delta 1350000; count(*) FILTER (WHERE gift) delta 100 in 0..100

SELECT country FROM sales WHERE month = '2011-06-01' GROUP BY country HAVING sum(amount) > 1.2 * (SELECT avg(s) FROM (SELECT country, sum(amount) AS s FROM sales WHERE month = '2011-05-01' GROUP BY country) q)
--> [country 4] f0 > 0 ~27000000; sum(amount) FILTER (WHERE month = '2011-06-01') - 1.2 * avg(sum(amount) FILTER(WHERE (month = '2011-05-01'))) OVER () {} delta 1950000

SELECT country, month FROM sales s WHERE gift GROUP BY country, month HAVING count(*) > 0.1 * (SELECT count(*) FROM sales t WHERE t.country = s.country)
--> [country 4, month 13] f0 > 0 ~15000; count(*) FILTER (WHERE gift) - 0.1 * sum(count(*)) OVER (PARTITION BY "country") {} delta 1100

SELECT country, count(*) > 0.05 * (SELECT count(*) FROM sales) AS big FROM sales WHERE gift GROUP BY country
--> [country 4] true show f0 > 0 ~22000; count(*) FILTER (WHERE gift) - 0.05 * sum(count(*)) OVER () {} delta 2100

WITH t AS (SELECT sum(amount) AS t FROM sales) SELECT country FROM sales, t WHERE gift GROUP BY country, t.t HAVING sum(amount) > 0.1 * t.t
--> [country 4] f0 > 0 ~19000000; sum(amount) FILTER (WHERE gift) - 0.1 * sum(sum(amount)) OVER () {} delta 1650000

SELECT s.country FROM sales s CROSS JOIN (SELECT sum(amount) AS t FROM sales) x WHERE s.gift GROUP BY s.country, x.t HAVING sum(s.amount) > 0.1 * x.t
--> [country 4] f0 > 0 ~19000000; sum(amount) FILTER (WHERE s.gift) - 0.1 * sum(sum(amount)) OVER () {} delta 1650000

WITH s AS (SELECT country, sum(amount) AS a FROM sales WHERE gift GROUP BY country) SELECT country FROM s WHERE a > (SELECT avg(a) FROM s) AND a > 0.1 * (SELECT sum(amount) FROM sales)
--> [country 4] (f0 > 0 ~10800000 and f1 > 0 ~49000000); sum(amount) FILTER (WHERE gift) - avg(sum(amount) FILTER(WHERE (gift))) OVER () {} delta 450000; sum(amount) FILTER (WHERE gift) - 0.1 * sum(sum(amount)) OVER () {} delta 1650000

SELECT date_trunc('quarter', month) AS quarter FROM sales WHERE gift GROUP BY 1 HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> [date_trunc('QUARTER', month) 5] f0 > 0 ~13000; count(*) FILTER (WHERE gift) - 0.1 * sum(count(*)) OVER () {} delta 1100

SELECT month FROM sales GROUP BY month HAVING count(*) > 0.5 * (SELECT avg(n) FROM (SELECT month, count(*) AS n FROM sales WHERE gift GROUP BY month) q)
--> [month 13] f0 > 0 ~31200; count(*) - 0.5 * avg(count(*) FILTER(WHERE (gift))) OVER () {} delta 2700

SELECT month FROM sales GROUP BY month HAVING count(*) > 0.5 * (SELECT avg(n) FROM (SELECT month, count(*) AS n FROM sales WHERE month > '2011-03-01' GROUP BY month) q)
--> KH107 avg(n)

SELECT month FROM sales WHERE invoice_date >= '2011-03-01' GROUP BY month HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT country FROM sales WHERE country <> 'France' OR gift GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT country FROM sales WHERE gift AND 1 = 1 GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> [country 4] f0 > 0 ~13000; count(*) FILTER (WHERE gift AND 1 = 1) - 0.1 * sum(count(*)) OVER () {} delta 1100

SELECT country FROM sales WHERE customer_id IN (SELECT customer_id FROM sales GROUP BY customer_id HAVING count(*) > 3) GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 customer_id

SELECT country FROM sales WHERE gift GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY count(*) DESC LIMIT 3
--> [country 4] f0 > 0 ~13000 first 3 falling ~730 priced; count(*) FILTER (WHERE gift) - 0.1 * sum(count(*)) OVER () {} delta 1100; count(*) FILTER (WHERE gift) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY country) AS place FROM sales WHERE gift GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT country, sum(count(*)) OVER () AS t FROM sales WHERE gift GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT s.country FROM sales s JOIN countries c ON s.country = c.name WHERE c.region = 'Europe' GROUP BY s.country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 countries

-- # Conditions on keys beside totals of all groups

SELECT country FROM sales WHERE country IN ('France', 'Germany') GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> [country 4] f0 > 0 ~7200; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT country FROM sales WHERE country <> 'France' AND gift GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY country LIMIT 2
--> [country 4] f0 > 0 ~13000; count(*) FILTER (WHERE gift) - 0.1 * sum(count(*)) OVER () {} delta 1100

SELECT month FROM sales WHERE month >= '2011-03-01' AND gift GROUP BY month HAVING count(*) > (SELECT avg(n) FROM (SELECT month, count(*) AS n FROM sales WHERE gift GROUP BY month) q)
--> [month 13] where "gift" = true f0 > 0 ~9880; count(*) - avg(count(*)) OVER () {} delta 1200

SELECT country FROM sales WHERE month >= '2011-03-01' GROUP BY month, country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> [month 13, country 4] f0 > 0 ~9300; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT FROM sales WHERE country <> 'France' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> [country 4] f0 > 0 ~7200; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT country FROM sales GROUP BY country HAVING country <> 'France' AND count(*) > 0.1 * (SELECT count(*) FROM sales) AND country <> 'Germany'
--> [country 4] f0 > 0 ~7200; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT country, count(*) > 0.1 * (SELECT count(*) FROM sales) AS big FROM sales WHERE country <> 'France' GROUP BY country
--> [country 4] true show f0 > 0 ~7200; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

WITH s AS (SELECT country AS c, sum(amount) AS a FROM sales WHERE country <> 'France' AND gift GROUP BY 1) SELECT c FROM s WHERE a > 0.1 * (SELECT sum(amount) FROM sales) OR a > 0.2 * (SELECT sum(amount) FROM sales)
--> [country 4] (f0 > 0 ~49000000 or f1 > 0 ~30000000); sum(amount) FILTER (WHERE gift) - 0.1 * sum(sum(amount)) OVER () {} delta 1650000; sum(amount) FILTER (WHERE gift) - 0.2 * sum(sum(amount)) OVER () {} delta 900000

WITH s AS (SELECT country AS c, sum(amount) AS a FROM sales WHERE country <> 'France' GROUP BY 1) SELECT c FROM s WHERE a > 0.1 * (SELECT sum(amount) FROM sales) AND a > (SELECT avg(a) FROM s)
--> KH101 sum(amount)

WITH s AS (SELECT month, sum(amount) AS a FROM sales WHERE country <> 'France' GROUP BY country, month) SELECT month FROM s WHERE a > 0.1 * (SELECT sum(amount) FROM sales)
--> KH101 sum(amount)

SELECT country FROM sales WHERE country < 'G' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT country FROM sales WHERE country = $1 GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT country FROM sales WHERE country LIKE 'F%' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT country FROM sales WHERE country <> 'France' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY sum(amount) DESC
--> KH107 count(*)

SELECT upper(country) FROM sales WHERE country <> 'France' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT country FROM sales GROUP BY country HAVING country <> 'France'
--> [country 3] true; 

SELECT country, count(*) AS n FROM sales WHERE country <> 'France' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY n DESC LIMIT 2
--> KH101 count(*)

SELECT country FROM sales WHERE country <> 'France' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY 1 DESC LIMIT 2
--> [country 4] f0 > 0 ~7200; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT country, (SELECT count(*) FROM sales) AS total FROM sales WHERE gift GROUP BY country HAVING count(*) > 500
--> KH101 count(*)

SELECT stock_code FROM sales WHERE stock_code IN ('A','B') GROUP BY stock_code HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT quantity FROM sales WHERE quantity BETWEEN 1 AND 5 GROUP BY quantity HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT quantity > 3 AS many FROM sales WHERE quantity BETWEEN 1 AND 5 GROUP BY quantity > 3 HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

SELECT invoice_date::date AS d FROM sales WHERE invoice_date >= '2011-01-01' AND invoice_date < '2011-02-01' GROUP BY 1 HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> KH107 count(*)

-- # Grouped WITH queries that totals alone read

WITH prev AS (SELECT country, sum(amount) AS s FROM sales WHERE month = '2011-05-01' GROUP BY country) SELECT country FROM sales WHERE month = '2011-06-01' GROUP BY country HAVING sum(amount) > (SELECT 1.2 * avg(s) FROM prev p)
--> [country 4] f0 > 0 ~27000000; sum(amount) FILTER (WHERE month = '2011-06-01') - 1.2 * avg(sum(amount) FILTER(WHERE (month = '2011-05-01'))) OVER () {} delta 1950000

WITH cur AS (SELECT country, sum(amount) AS s FROM sales WHERE month = '2011-06-01' GROUP BY country), prev AS (SELECT country, sum(amount) AS s FROM sales WHERE month = '2011-05-01' GROUP BY country) SELECT country FROM cur WHERE s > (SELECT avg(s) FROM prev)
--> [country 4] f0 > 0 ~10400000; sum(amount) FILTER (WHERE month = '2011-06-01') - avg(sum(amount) FILTER(WHERE (month = '2011-05-01'))) OVER () {} delta 750000

WITH cur AS (SELECT country, sum(amount) AS s FROM sales WHERE month = '2011-06-01' GROUP BY country), p AS (SELECT country, sum(amount) AS s FROM sales WHERE month = '2011-05-01' GROUP BY country), prev AS (SELECT avg(s) AS a FROM p) SELECT country FROM cur, prev WHERE s > a
--> [country 4] f0 > 0 ~10400000; sum(amount) FILTER (WHERE month = '2011-06-01') - avg(sum(amount) FILTER(WHERE (month = '2011-05-01'))) OVER () {} delta 750000

SELECT c.country FROM (SELECT country, sum(amount) AS s FROM sales WHERE month = '2011-06-01' GROUP BY country) c CROSS JOIN (SELECT avg(s) AS a FROM (SELECT country, sum(amount) AS s FROM sales WHERE month = '2011-05-01' GROUP BY country) z) p WHERE c.s > p.a
--> [country 4] f0 > 0 ~10400000; sum(amount) FILTER (WHERE month = '2011-06-01') - avg(sum(amount) FILTER(WHERE (month = '2011-05-01'))) OVER () {} delta 750000

SELECT country FROM sales CROSS JOIN (SELECT avg(s) AS a FROM (SELECT country, sum(amount) AS s FROM sales GROUP BY country) z) p WHERE gift GROUP BY country, a HAVING sum(amount) > p.a
--> [country 4] f0 > 0 ~10400000; sum(amount) FILTER (WHERE gift) - avg(sum(amount)) OVER () {} delta 750000

WITH p AS (SELECT country, sum(amount) AS s FROM sales GROUP BY country) SELECT country FROM sales GROUP BY country HAVING sum(amount) > (SELECT avg(s) FROM p) AND sum(amount) < (SELECT sum(s) FROM p)
--> [country 4] (f0 > 0 ~10800000 and f1 <= -1 ~5400000); sum(amount) - avg(sum(amount)) OVER () {} delta 450000; sum(amount) - sum(sum(amount)) OVER () {} delta 1

WITH p AS (SELECT month, sum(amount) AS s FROM sales GROUP BY month) SELECT country FROM sales WHERE gift GROUP BY country HAVING sum(amount) > (SELECT avg(s) FROM p)
--> KH107 avg(s)

WITH p AS (SELECT country, sum(amount) AS s FROM sales WHERE gift GROUP BY country) SELECT (SELECT avg(s) FROM p)
--> KH101 sum(amount)

SELECT country, month FROM sales s GROUP BY country, month HAVING count(DISTINCT customer_id) > 0.2 * (SELECT count(DISTINCT customer_id) FROM sales t WHERE t.month = s.month)
--> [country 4, month 13] f0 > 0 ~33; count(DISTINCT customer_id) - 0.2 * count(DISTINCT customer_id) OVER (PARTITION BY "month") {} delta 4

SELECT country FROM sales GROUP BY country HAVING count(DISTINCT (customer_id, month)) > 0.2 * (SELECT count(DISTINCT (customer_id, month)) FROM sales)
--> [country 4] f0 > 0 ~33; count(DISTINCT customer_id, month) - 0.2 * count(DISTINCT (customer_id, month)) OVER () {} delta 4

SELECT country FROM sales GROUP BY country HAVING count(DISTINCT (customer_id, month)) > 0.2 * count(DISTINCT (customer_id, month)) OVER ()
--> [country 4] f0 > 0 ~33; count(DISTINCT customer_id, month) - 0.2 * count(DISTINCT (customer_id, month)) OVER () {} delta 4

SELECT country, month FROM sales WHERE gift GROUP BY country, month HAVING 100.0 * count(DISTINCT customer_id) / count(DISTINCT customer_id) OVER (PARTITION BY month) >= 20
--> [country 4, month 13] where "gift" = true (f0 > -1 ~90 and f1 > 0 ~40); count(DISTINCT customer_id) - 0.2 * count(DISTINCT customer_id) OVER (PARTITION BY month) {} delta 4; count(DISTINCT customer_id) OVER (PARTITION BY month) {} delta 1

SELECT country FROM sales GROUP BY country HAVING count(DISTINCT (customer_id, month)) > 0.2 * (SELECT count(DISTINCT (customer_id, stock_code)) FROM sales)
--> KH107 count(DISTINCT

-- # Standard deviations of rows, beside a group's own mean

SELECT country FROM sales GROUP BY country HAVING avg(amount) > (SELECT avg(amount) + stddev(amount) FROM sales) AND count(amount) >= 60000
--> KH206 avg(amount) else [country 4] (f0 > 0 ~16000 and f1 > 219999 ~22000 and f2 > 59999 ~6000); avg(amount) - (sum(sum(amount)) OVER () / sum(count(amount)) OVER () + stddev(amount) OVER ()) {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM sales GROUP BY month HAVING avg(amount) > (SELECT avg(amount) FROM sales) + 0.5 * (SELECT stddev_pop(amount) FROM sales)
--> KH206 avg(amount) else [month 13] (f0 > 0 ~11000 and f1 > 589999 ~59000 and f2 > 49999 ~5000); avg(amount) - (sum(sum(amount)) OVER () / sum(count(amount)) OVER () + 0.5 * stddev_pop(amount) OVER ()) {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 2 * (SELECT stddev(age) FROM visits WHERE insured)
--> KH206 avg(age) else [ward 3] (f0 > 0 ~5100 and f1 > 539 ~54 and f2 > 199 ~20); avg(age) - 2 * stddev(age) FILTER(WHERE (insured)) OVER () {} delta 55; sum(count(age) FILTER(WHERE (insured))) OVER () {} delta 1; count(age) delta 1

WITH s AS (SELECT avg(amount) AS m, stddev(amount) AS sd FROM sales) SELECT country FROM sales, s GROUP BY country, s.m, s.sd HAVING avg(amount) > s.m + s.sd
--> KH206 avg(amount) else [country 4] (f0 > 0 ~18000 and f1 > 179999 ~18000 and f2 > 49999 ~5000); avg(amount) - (sum(sum(amount)) OVER () / sum(count(amount)) OVER () + stddev(amount) OVER ()) {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT country FROM (SELECT country, avg(amount) AS a FROM sales GROUP BY country) q WHERE a > (SELECT avg(amount) + stddev(amount) FROM sales)
--> KH206 a else [country 4] (f0 > 0 ~18000 and f1 > 179999 ~18000 and f2 > 49999 ~5000); avg(amount) - (sum(sum(amount)) OVER () / sum(count(amount)) OVER () + stddev(amount) OVER ()) {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT country FROM sales GROUP BY country HAVING (avg(amount) - (SELECT avg(amount) FROM sales)) / nullif((SELECT stddev(amount) FROM sales), 0) > 1
--> KH206 avg(amount) else [country 4] (f0 > 0 ~18000 and f1 > 179999 ~18000 and f2 > 49999 ~5000); avg(amount) - (sum(sum(amount)) OVER () / sum(count(amount)) OVER () + stddev(amount) OVER ()) {} delta 150000; sum(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT country FROM sales GROUP BY country HAVING (avg(amount) - (SELECT avg(amount) FROM sales)) / (SELECT stddev(amount) FROM sales) > -1
--> KH204 avg(amount)

SELECT country FROM sales GROUP BY country HAVING (avg(amount) - (SELECT avg(amount) FROM sales WHERE gift)) / (SELECT stddev(amount) FROM sales) > 1
--> KH204 avg(amount)

SELECT day FROM visits GROUP BY day HAVING abs(avg(cost) - (SELECT avg(cost) FROM visits)) > 2 * (SELECT stddev(cost) FROM visits)
--> KH206 avg(cost) else [day 10] ((f0 > 0 ~19000 and f1 > 1799 ~180 and f2 > 199 ~20) or (f3 <= -1 ~19000 and f1 > 1799 ~180 and f2 > 199 ~20)); avg(cost) - (sum(sum(cost)) OVER () / sum(count(cost)) OVER () + 2 * stddev(cost) OVER ()) {} delta 5000; sum(count(cost)) OVER () {} delta 1; count(cost) delta 1; avg(cost) - (sum(sum(cost)) OVER () / sum(count(cost)) OVER () - 2 * stddev(cost) OVER ()) {} delta 5000

SELECT day, hour FROM visits GROUP BY day, hour HAVING avg(cost) BETWEEN (SELECT avg(cost) - stddev(cost) FROM visits) AND (SELECT avg(cost) + stddev(cost) FROM visits)
--> KH206 avg(cost) else [day 10, hour 24] (f0 > -1 ~9600 and f1 > 14999 ~1500 and f2 > 199 ~20 and f3 <= 0 ~9600); avg(cost) - (sum(sum(cost)) OVER () / sum(count(cost)) OVER () - stddev(cost) OVER ()) {} delta 5000; sum(count(cost)) OVER () {} delta 1; count(cost) delta 1; avg(cost) - (sum(sum(cost)) OVER () / sum(count(cost)) OVER () + stddev(cost) OVER ()) {} delta 5000

SELECT ward, hour FROM visits v GROUP BY ward, hour HAVING avg(age) > (SELECT avg(w.age) + stddev(w.age) FROM visits w WHERE w.ward = v.ward)
--> KH206 avg(age) else [ward 3, hour 24] (f0 > 0 ~2200 and f1 > 4399 ~440 and f2 > 199 ~20); avg(age) - (sum(sum(age)) OVER (PARTITION BY "ward") / sum(count(age)) OVER (PARTITION BY "ward") + stddev(age) OVER (PARTITION BY "ward")) {} delta 55; sum(count(age)) OVER (PARTITION BY "ward") {} delta 1; count(age) delta 1

SELECT ward, avg(age) > (SELECT avg(age) + stddev(age) FROM visits) AS old FROM visits GROUP BY ward
--> KH206 avg(age) else [ward 3] true show (f0 > 0 ~3000 and f1 > 539 ~54 and f2 > 199 ~20); avg(age) - (sum(sum(age)) OVER () / sum(count(age)) OVER () + stddev(age) OVER ()) {} delta 55; sum(count(age)) OVER () {} delta 1; count(age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING (SELECT avg(2 * age + 1) - stddev(2 * age + 1) FROM visits) > avg(2 * age + 1)
--> KH206 (SELECT else [ward 3] (f0 <= -1 ~6100 and f1 > 539 ~54 and f2 > 199 ~20); avg(2 * age + 1) - (sum(sum(2 * age + 1)) OVER () / sum(count(2 * age + 1)) OVER () - stddev(2 * age + 1) OVER ()) {} delta 221; sum(count(2 * age + 1)) OVER () {} delta 1; count(age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT avg(age) + stddev(cost) FROM visits)
--> KH204 avg(age)

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT avg(age) + 2 * sqrt(var_pop(age) FILTER (WHERE insured)) FROM visits WHERE insured)
--> KH206 avg(age) else [ward 3] (f0 > 0 ~5100 and f1 > 539 ~54 and f2 > 199 ~20); avg(age) - (sum(sum(age) FILTER(WHERE (insured))) OVER () / sum(count(age) FILTER(WHERE (insured))) OVER () + 2 * stddev_pop(age) FILTER(WHERE (insured) AND (insured)) OVER ()) {} delta 55; sum(count(age) FILTER(WHERE (insured))) OVER () {} delta 1; count(age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT avg(age) + sqrt(variance(age)) FROM visits)
--> KH206 avg(age) else [ward 3] (f0 > 0 ~3000 and f1 > 539 ~54 and f2 > 199 ~20); avg(age) - (sum(sum(age)) OVER () / sum(count(age)) OVER () + stddev(age) OVER ()) {} delta 55; sum(count(age)) OVER () {} delta 1; count(age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING count(*) > (SELECT sqrt(variance(age)) FROM visits)
--> KH107 sqrt(variance(age))

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT variance(age) FROM visits)
--> KH107 variance(age)

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT stddev(age + cost) FROM visits)
--> KH204 (SELECT

SELECT ward FROM visits GROUP BY ward HAVING sum(age) > 100 * (SELECT stddev(age) FROM visits)
--> KH107 stddev(age)

SELECT ward FROM visits GROUP BY ward HAVING stddev(age) > (SELECT stddev(age) FROM visits)
--> KH107 stddev(age)

SELECT ward FROM visits GROUP BY ward HAVING max(age) > (SELECT avg(age) + 3 * stddev(age) FROM visits)
--> KH107 avg(age)

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 2 * (SELECT stddev(age) FROM visits) - (SELECT stddev_pop(age) FROM visits)
--> KH204 avg(age)

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > stddev(age) OVER ()
--> KH204 stddev(age)

SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE age > (SELECT avg(age) + stddev(age) FROM visits)) >= 20
--> KH107 avg(age)

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT stddev(age) FROM visits) AND count(*) > 0.1 * (SELECT count(*) FROM visits)
--> KH206 avg(age) else [ward 3] (f0 > 0 ~17000 and f1 > 1399 ~140 and f2 > 499 ~50 and f3 > 0 ~70); avg(age) - stddev(age) OVER () {} delta 55; sum(count(age)) OVER () {} delta 1; count(age) delta 1; count(*) - 0.1 * sum(count(*)) OVER () {} delta 9

SELECT month FROM sales GROUP BY month HAVING abs(count(*) - 5000) > (SELECT avg(n) FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q)
--> [month 13] (f0 > 65000 ~9880 or f1 <= 64999 ~6500); count(*) - avg(count(*)) OVER () {} delta 1200; count(*) + avg(count(*)) OVER () {} delta 1400

SELECT ward FROM visits GROUP BY ward HAVING NOT avg(age) <= (SELECT avg(age) + stddev(age) FROM visits WHERE insured)
--> KH206 avg(age) else [ward 3] (f0 > 0 ~3000 and f1 > 539 ~54 and f2 > 199 ~20); avg(age) - (sum(sum(age) FILTER(WHERE (insured))) OVER () / sum(count(age) FILTER(WHERE (insured))) OVER () + stddev(age) FILTER(WHERE (insured)) OVER ()) {} delta 55; sum(count(age) FILTER(WHERE (insured))) OVER () {} delta 1; count(age) delta 1

-- # Quantiles of rows, beside a group's own mean

SELECT country FROM sales GROUP BY country HAVING avg(amount) > 2 * (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM sales WHERE gift)
--> KH206 avg(amount) else KH204 avg(amount)

SELECT country FROM capped_sales GROUP BY country HAVING avg(amount) > 2 * (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM capped_sales WHERE gift)
--> KH206 avg(amount) else [country 4] (f0 > 0 ~8200 and f1 > 18999 ~1900 and f2 > 4999 ~500); avg(amount) - 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FILTER(WHERE (gift)) OVER () {} delta 250000; sum(count(amount) FILTER(WHERE (gift))) OVER () {} delta 5; count(amount) delta 5

WITH m AS (SELECT median(amount) AS v FROM capped_sales) SELECT country FROM capped_sales, m GROUP BY country, m.v HAVING avg(amount) > m.v
--> KH206 avg(amount) else [country 4] (f0 > 0 ~6600 and f1 > 18999 ~1900 and f2 > 4999 ~500); avg(amount) - percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) OVER () {} delta 250000; sum(count(amount)) OVER () {} delta 5; count(amount) delta 5

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT avg(age) FROM visits) AND avg(cost) > (SELECT median(cost) FROM visits)
--> KH206 avg(age) else [ward 3] (f0 > 0 ~9200 and f1 > 539 ~54 and f2 > 199 ~20 and f3 > 0 ~5000 and f4 > 3199 ~320 and f5 > 199 ~20); avg(age) - sum(sum(age)) OVER () / sum(count(age)) OVER () {} delta 55; sum(count(age)) OVER () {} delta 1; count(age) delta 1; avg(cost) - percentile_cont(0.5) WITHIN GROUP (ORDER BY cost) OVER () {} delta 5000; sum(count(cost)) OVER () {} delta 1; count(cost) delta 1

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY age) FROM visits WHERE insured) - 5
--> KH206 avg(age) else [ward 3] (f0 > 0 ~4700 and f1 > 10999 ~1100 and f2 > 499 ~50); avg(age) - (percentile_disc(0.9) WITHIN GROUP (ORDER BY age) FILTER(WHERE (insured)) OVER () - 5) {} delta 55; sum(count(age) FILTER(WHERE (insured))) OVER () {} delta 1; count(age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING avg(age) BETWEEN 0.9 * (SELECT median(age) FROM visits) AND 1.1 * (SELECT median(age) FROM visits)
--> KH206 avg(age) else [ward 3] (f0 > -1 ~4600 and f1 > 2999 ~300 and f2 > 499 ~50 and f3 <= 0 ~4800 and f2 > 199 ~20); avg(age) - 0.9 * percentile_cont(0.5) WITHIN GROUP (ORDER BY age) OVER () {} delta 55; sum(count(age)) OVER () {} delta 1; count(age) delta 1; avg(age) - 1.1 * percentile_cont(0.5) WITHIN GROUP (ORDER BY age) OVER () {} delta 55

SELECT ward FROM visits CROSS JOIN (SELECT percentile_cont(0.75) WITHIN GROUP (ORDER BY age) AS q3 FROM visits) m GROUP BY ward, q3 HAVING avg(age) > q3
--> KH206 avg(age) else [ward 3] (f0 > 0 ~11000 and f1 > 4499 ~450 and f2 > 199 ~20); avg(age) - percentile_cont(0.75) WITHIN GROUP (ORDER BY age) OVER () {} delta 55; sum(count(age)) OVER () {} delta 1; count(age) delta 1

SELECT ward FROM (SELECT ward, avg(age) AS n FROM visits GROUP BY ward) q WHERE n < (SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY age) FROM visits)
--> KH206 n else [ward 3] (f0 <= -1 ~11000 and f1 > 4499 ~450 and f2 > 199 ~20); avg(age) - percentile_cont(0.25) WITHIN GROUP (ORDER BY age) OVER () {} delta 55; sum(count(age)) OVER () {} delta 1; count(age) delta 1

SELECT ward, day FROM visits v GROUP BY ward, day HAVING avg(age) > (SELECT median(age) FROM visits u WHERE u.ward = v.ward)
--> KH206 avg(age) else [ward 3, day 10] (f0 > 0 ~11000 and f1 > 5499 ~550 and f2 > 199 ~20); avg(age) - percentile_cont(0.5) WITHIN GROUP (ORDER BY age) OVER (PARTITION BY "ward") {} delta 55; sum(count(age)) OVER (PARTITION BY "ward") {} delta 1; count(age) delta 1

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 0.8 * (SELECT max(age) FROM visits)
--> KH107 max(age)

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT percentile_cont(1) WITHIN GROUP (ORDER BY age) FROM visits)
--> KH204 (SELECT

SELECT ward FROM visits GROUP BY ward HAVING avg(age) / (SELECT median(age) FROM visits) > 1.2
--> KH204 avg(age)

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM visits) / 2
--> KH204 (SELECT

SELECT ward FROM visits GROUP BY ward HAVING avg(age) > (SELECT avg(age) + percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM visits)
--> KH204 avg(age)

SELECT ward FROM visits GROUP BY ward HAVING median(age) > (SELECT median(age) FROM visits)
--> KH107 median(age)

-- # Windows in the order of several expressions of a key, and of texts of numerals

SELECT y, m FROM (SELECT extract(year FROM month) AS y, extract(month FROM month) AS m, count(*) AS n, lag(count(*)) OVER (ORDER BY extract(year FROM month), extract(month FROM month)) AS b FROM sales GROUP BY 1, 2) q WHERE n > b
--> [month 13] f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY EXTRACT(YEAR FROM month), EXTRACT(MONTH FROM month)) {} delta 100

SELECT y, m FROM (SELECT extract(year FROM invoice_date) AS y, extract(month FROM invoice_date) AS m, count(*) AS n, lag(count(*)) OVER (PARTITION BY extract(month FROM invoice_date) ORDER BY extract(year FROM invoice_date)) AS b FROM sales GROUP BY 1, 2) q WHERE n > b
--> [month 13] f0 > 0 ~1200; count(*) - lag(count(*)) OVER (PARTITION BY EXTRACT(MONTH FROM invoice_date) ORDER BY EXTRACT(YEAR FROM invoice_date)) {} delta 100

WITH g AS (SELECT extract(year FROM month) AS y, extract(month FROM month) AS m, sum(amount) AS s FROM sales GROUP BY 1, 2) SELECT a.y, a.m FROM g a JOIN g b ON a.y = b.y + 1 AND a.m = b.m WHERE a.s > 1.1 * b.s
--> [month 13] f0 > 0 ~18000000; sum(amount) - 1.1 * first_value(sum(amount)) OVER (PARTITION BY EXTRACT(MONTH FROM month) ORDER BY EXTRACT(YEAR FROM month) RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING) {} delta 1500000

SELECT country, m FROM (SELECT country, to_char(month, 'YYYY-MM') AS m, count(*) AS n, sum(count(*)) OVER (PARTITION BY country ORDER BY to_char(month, 'YYYY-MM') ROWS 2 PRECEDING) AS w FROM sales GROUP BY 1, 2) q WHERE w > 3000
--> [country 4, month 13] f0 > 3000 ~300; sum(count(*)) OVER (PARTITION BY country ORDER BY to_char(month, 'YYYY-MM') ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) {} delta 100

SELECT m FROM (SELECT to_char(month, 'MM/YYYY') AS m, count(*) AS n, lag(count(*)) OVER (ORDER BY to_char(month, 'MM/YYYY')) AS b FROM sales GROUP BY 1) q WHERE n > b
--> KH204 n

SELECT m FROM (SELECT to_char(month, 'Mon YYYY') AS m, count(*) AS n, lag(count(*)) OVER (ORDER BY to_char(month, 'Mon YYYY')) AS b FROM sales GROUP BY 1) q WHERE n > b
--> KH204 n

SELECT y, m FROM (SELECT extract(year FROM month) AS y, extract(month FROM month) AS m, count(*) AS n, lag(count(*)) OVER (ORDER BY extract(month FROM month), extract(year FROM month)) AS b FROM sales GROUP BY 1, 2) q WHERE n > b
--> KH204 n

SELECT country, month FROM (SELECT country, month, count(*) AS n, lag(count(*)) OVER (ORDER BY country, month) AS b FROM sales GROUP BY 1, 2) q WHERE n > b
--> KH204 n

WITH m AS (SELECT date_trunc('month', invoice_date)::date AS mon, count(*) AS n FROM sales GROUP BY 1) SELECT cur.mon FROM m AS cur LEFT JOIN m AS prev ON prev.mon = (cur.mon - interval '1 month')::date WHERE cur.n > coalesce(prev.n, 0) * 1.2
--> [month 13] f0 > 0 ~6500; count(*) - 1.2 * coalesce(first_value(count(*)) OVER (ORDER BY CAST(date_trunc('MONTH', invoice_date) AS DATE) RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING), 0) {} delta 500

-- # Other groups that scalar subqueries look up, and joins of groups whose keys are constants

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT month FROM m WHERE n > (SELECT p.n FROM m p WHERE p.month = m.month - interval '1 year')
--> [month 13] f0 > 0 ~1200; count(*) - first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '12 MONTHS' PRECEDING AND INTERVAL '12 MONTHS' PRECEDING) {} delta 100

SELECT m.month FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) m WHERE m.n > 1.2 * (SELECT n FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) p WHERE month = m.month - interval '1 month')
--> [month 13] f0 > 0 ~6500; count(*) - 1.2 * first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 500

WITH m AS (SELECT country, month, sum(amount) AS s FROM sales GROUP BY country, month) SELECT country, month, s > (SELECT s FROM m b WHERE b.country = a.country AND b.month = a.month - interval '1 month') AS up FROM m a ORDER BY month
--> [country 4, month 13] true show f0 > 0 ~1800000; sum(amount) - first_value(sum(amount)) OVER (PARTITION BY country ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 150000

WITH m AS (SELECT country, month, sum(amount) AS s FROM sales GROUP BY country, month) SELECT country, month FROM m a WHERE s > (SELECT s FROM m b WHERE b.month = a.month - interval '1 month')
--> KH101 sum(amount)

WITH m AS (SELECT month, sum(amount) AS s FROM sales GROUP BY month) SELECT month FROM m a WHERE s > (SELECT coalesce(s, 0) FROM m b WHERE b.month = a.month - interval '1 month')
--> KH101 sum(amount)

WITH y AS (SELECT extract(year FROM month) AS yr, country, sum(amount) AS s FROM sales GROUP BY 1, 2) SELECT a.country FROM y a JOIN y b ON a.country = b.country AND a.yr = 2011 AND b.yr = 2010 WHERE a.s > 1.1 * b.s
--> [EXTRACT(YEAR FROM month) 2, country 4] f0 > 0 ~18000000; sum(amount) - 1.1 * first_value(sum(amount)) OVER (PARTITION BY country ORDER BY EXTRACT(YEAR FROM month) RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING) {} delta 1500000

WITH m AS (SELECT month, country, sum(amount) AS s FROM sales GROUP BY 1, 2) SELECT a.country FROM m a, m b WHERE a.country = b.country AND a.month = DATE '2011-06-01' AND b.month = DATE '2011-05-01' AND a.s > b.s
--> [month 13, country 4] f0 > 0 ~1800000; sum(amount) - first_value(sum(amount)) OVER (PARTITION BY country ORDER BY month RANGE BETWEEN INTERVAL '31 DAYS' PRECEDING AND INTERVAL '31 DAYS' PRECEDING) {} delta 150000

WITH m AS (SELECT month, country, sum(amount) AS s FROM sales GROUP BY 1, 2) SELECT a.country FROM m a, m b WHERE a.country = b.country AND a.month = DATE '2011-06-01' AND b.month = current_date AND a.s > b.s
--> KH101 sum(amount)

SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0.1 * (SELECT sum(amount) FROM sales) ORDER BY sum(amount) DESC LIMIT 2
--> [country 4] f0 > 0 ~11000000 first 2 falling ~1300000 signed priced; sum(amount) - 0.1 * sum(sum(amount)) OVER () {} delta 1350000; sum(amount) delta 150000 in -100000..150000

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE n > 1.2 * before ORDER BY n DESC LIMIT 3
--> [month 13] f0 > 0 ~6500 first 3 falling ~1200 priced; count(*) - 1.2 * lag(count(*)) OVER (ORDER BY month) {} delta 500; count(*) delta 100 in 0..100

SELECT month, rank() OVER (ORDER BY n DESC) AS place FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE n > 1.2 * before
--> [month 13] f0 > 0 ~6500 all falling ~690 priced; count(*) - 1.2 * lag(count(*)) OVER (ORDER BY month) {} delta 500; count(*) delta 100 in 0..100

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.n > 1.2 * b.n ORDER BY a.n DESC LIMIT 3
--> [month 13] f0 > 0 ~6500 first 3 falling ~1200 priced; count(*) - 1.2 * first_value(count(*)) OVER (ORDER BY month RANGE BETWEEN INTERVAL '1 MONTH' PRECEDING AND INTERVAL '1 MONTH' PRECEDING) {} delta 500; count(*) delta 100 in 0..100

WITH m AS (SELECT country, sum(amount) AS s FROM sales GROUP BY country) SELECT country FROM m WHERE s > 0.1 * (SELECT sum(s) FROM m) ORDER BY s DESC LIMIT 2
--> [country 4] f0 > 0 ~11000000 first 2 falling ~1300000 signed priced; sum(amount) - 0.1 * sum(sum(amount)) OVER () {} delta 1350000; sum(amount) delta 150000 in -100000..150000

SELECT country FROM sales WHERE country <> 'France' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY count(*) DESC LIMIT 2
--> [country 4] f0 > 0 ~7200 all falling ~1100 priced cut; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; count(*) delta 100 in 0..100

SELECT country FROM sales WHERE country <> 'France' AND gift GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY count(*) DESC, country LIMIT 2
--> [country 4] f0 > 0 ~13000 all falling ~1100 priced cut; count(*) FILTER (WHERE gift) - 0.1 * sum(count(*)) OVER () {} delta 1100; count(*) FILTER (WHERE (gift)) delta 100 in 0..100

SELECT country FROM (SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)) q WHERE country <> 'France' ORDER BY n DESC LIMIT 2
--> [country 4] f0 > 0 ~7200 all falling ~1100 priced cut; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; count(*) delta 100 in 0..100

SELECT country, rank() OVER (ORDER BY n DESC) FROM (SELECT country, count(*) AS n, sum(count(*)) OVER () AS total FROM sales GROUP BY country) q WHERE n > 0.1 * total AND country <> 'France'
--> [country 4] f0 > 0 ~7200 all falling ~1100 priced cut; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; count(*) delta 100 in 0..100

SELECT DISTINCT ON (country) country, month FROM (SELECT country, month, count(*) AS n, lag(count(*)) OVER (PARTITION BY country ORDER BY month) AS before FROM sales GROUP BY country, month) q WHERE n > 1.2 * before ORDER BY country, n DESC
--> [country 4, month 13] f0 > 0 ~6500 first 1 per country falling ~1200 priced; count(*) - 1.2 * lag(count(*)) OVER (PARTITION BY country ORDER BY month) {} delta 500; count(*) delta 100 in 0..100

SELECT country, count(*) > 0.1 * (SELECT count(*) FROM sales) AS big FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 2
--> [country 4] true show f0 > 0 ~7200 first 2 falling ~830 priced; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q WHERE n > 100 AND country <> 'France' ORDER BY n DESC LIMIT 2
--> [country 3] f0 > 100 ~10 first 2 falling ~690 priced; count(*) delta 100 in 0..100; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY 100.0 * count(*) / (SELECT count(*) FROM sales) DESC LIMIT 2
--> [country 4] true first 2 falling ~830 priced; count(*) delta 100 in 0..100

SELECT country FROM sales GROUP BY country ORDER BY round(100.0 * count(*) / sum(count(*)) OVER (), 1) DESC LIMIT 2
--> [country 4] true first 2 falling ~830 priced; count(*) delta 100 in 0..100

SELECT country FROM (SELECT country, count(*)::numeric / nullif(sum(count(*)) OVER (), 0) AS share FROM sales GROUP BY country) q ORDER BY share LIMIT 2
--> [country 4] true first 2 rising ~830 priced; count(*) delta 100 in 0..100

WITH m AS (SELECT country, count(*) AS n FROM sales GROUP BY country) SELECT country, rank() OVER (ORDER BY n * 1.0 / (SELECT sum(n) FROM m) DESC) FROM m
--> [country 4] true all falling ~690 priced; count(*) delta 100 in 0..100

SELECT country, month, rank() OVER (PARTITION BY country ORDER BY count(*) / sum(count(*)) OVER (PARTITION BY country) DESC) AS place FROM sales GROUP BY country, month
--> [country 4, month 13] true all per country falling ~690 priced; count(*) delta 100 in 0..100

SELECT country, month FROM sales GROUP BY country, month ORDER BY 1.0 * count(*) / sum(count(*)) OVER (PARTITION BY country) DESC LIMIT 3
--> KH204 1.0

SELECT country FROM sales GROUP BY country ORDER BY count(*) / (SELECT count(*) FROM sales) DESC LIMIT 2
--> KH204 count(*)

SELECT country FROM sales GROUP BY country ORDER BY sum(amount) / (SELECT sum(amount) FROM sales) DESC LIMIT 2
--> KH204 sum(amount)

SELECT country FROM sales GROUP BY country ORDER BY 1 - 1.0 * count(*) / (SELECT count(*) FROM sales) LIMIT 2
--> KH107 count(*)

SELECT DISTINCT ON (country) country, month FROM (SELECT country, month, count(*) AS n, lag(count(*)) OVER (PARTITION BY country ORDER BY month) AS before FROM sales GROUP BY country, month) q WHERE n > 1.2 * before AND country <> 'France' ORDER BY country, n DESC
--> KH101 count(*)

SELECT country FROM sales GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) INTERSECT SELECT country FROM sales GROUP BY country HAVING count(*) > (SELECT avg(n) FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q)
--> [country 4] (f0 > 0 ~20000 and f1 > 0 ~7200); count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; count(*) - avg(count(*)) OVER () {} delta 300

SELECT country FROM sales GROUP BY country HAVING sum(amount) > 40000 EXCEPT SELECT country FROM sales GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> [country 4] (f0 > 4000000 ~400000 and f1 <= 0 ~7200); sum(amount) delta 150000 in -100000..150000; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT country FROM sales WHERE gift GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales WHERE gift) UNION SELECT country FROM sales WHERE gift GROUP BY country HAVING sum(amount) > 40000
--> [country 4] where "gift" = true (f0 > 0 ~7200 or f1 > 4000000 ~400000); count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; sum(amount) delta 150000 in -100000..150000

SELECT country FROM sales WHERE gift GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales WHERE gift) UNION SELECT country FROM sales GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales)
--> [country 4] where "gift" = true f0 > 0 ~7200; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900 & [country 4] f0 > 0 ~7200; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT country FROM sales WHERE country <> 'France' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) INTERSECT SELECT country FROM sales GROUP BY country HAVING sum(amount) > 40000
--> [country 4] f0 > 0 ~7200; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900 & [country 4] f0 > 4000000 ~400000; sum(amount) delta 150000 in -100000..150000

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n > 1.2 * b EXCEPT SELECT month FROM (SELECT month, sum(amount) AS n, lag(sum(amount)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n > 1.2 * b
--> [month 13] f0 > 0 ~6500; count(*) - 1.2 * lag(count(*)) OVER (ORDER BY month) {} delta 500 & [month 13] f0 > 0 ~9500000; sum(amount) - 1.2 * lag(sum(amount)) OVER (ORDER BY month) {} delta 750000

SELECT month FROM sales GROUP BY month HAVING count(*) > 500 EXCEPT SELECT month FROM sales GROUP BY month HAVING count(*) > lag(count(*)) OVER (ORDER BY month)
--> [month 13] f0 > 500 ~50; count(*) delta 100 in 0..100 & [month 13] f0 > 0 ~1200; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

(SELECT country FROM sales GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY count(*) DESC LIMIT 2) UNION SELECT country FROM sales GROUP BY country HAVING sum(amount) > 40000
--> [country 4] f0 > 0 ~7200 first 2 falling ~830 priced; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; count(*) delta 100 in 0..100 & [country 4] f0 > 4000000 ~400000; sum(amount) delta 150000 in -100000..150000

SELECT month FROM sales GROUP BY month ORDER BY count(*) - lag(count(*)) OVER (ORDER BY month) DESC NULLS LAST LIMIT 5
--> [month 13] true first 5 falling ~2300 signed priced; count(*) delta 100 in 0..100

SELECT month FROM (SELECT month, sum(amount) AS s, lag(sum(amount), 12) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q ORDER BY s - before LIMIT 3
--> [month 13] true first 3 rising ~3500000 signed priced; sum(amount) delta 150000 in -100000..150000

SELECT month FROM (SELECT month, count(*) - lag(count(*)) OVER (ORDER BY month) AS growth FROM sales GROUP BY month) q ORDER BY growth DESC LIMIT 5
--> [month 13] true first 5 falling ~2300 signed priced; count(*) delta 100 in 0..100

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE before >= 5000 ORDER BY n - before DESC LIMIT 5
--> [month 13] true show f0 > 4999 ~500 all falling ~2800 signed priced cut; lag(count(*)) OVER (ORDER BY month) {} delta 1; count(*) delta 100 in 0..100

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS before FROM sales GROUP BY month) q WHERE month >= '2011-01-01' ORDER BY n - before DESC LIMIT 5
--> [month 13] true all falling ~2800 signed priced cut; count(*) delta 100 in 0..100

SELECT country, month, rank() OVER (PARTITION BY country ORDER BY count(*) - lag(count(*)) OVER (PARTITION BY country ORDER BY month) DESC NULLS LAST) AS r FROM sales GROUP BY country, month
--> [country 4, month 13] true all per country falling ~1400 signed priced; count(*) delta 100 in 0..100

SELECT month FROM sales GROUP BY month ORDER BY sum(count(*)) OVER (ORDER BY month ROWS 2 PRECEDING) DESC LIMIT 3
--> [month 13] true first 3 falling ~3500 signed priced; sum(count(*)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) delta 100 in 0..100

SELECT month FROM sales GROUP BY month ORDER BY count(*)::numeric / lag(count(*)) OVER (ORDER BY month) DESC LIMIT 5
--> KH204 count(*)::numeric

SELECT month FROM sales GROUP BY month ORDER BY count(*) - avg(count(*)) OVER () DESC LIMIT 5
--> KH204 count(*)

SELECT month FROM sales GROUP BY month HAVING count(*) > 100 ORDER BY count(*) - lag(count(*)) OVER (ORDER BY month) DESC LIMIT 5
--> KH204 count(*)

SELECT country FROM sales WHERE country <> 'France' GROUP BY country HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) ORDER BY count(*) DESC
--> KH107 count(*)

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE b IS NOT NULL AND n > b
--> [month 13] (f0 <= 0 ~0 and f1 > 0 ~1200); lag(count(*)) OVER (ORDER BY month) IS NULL {} delta 1; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month, CASE WHEN b IS NULL THEN 'first' WHEN n > b THEN 'up' ELSE 'down' END AS way FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q
--> [month 13] true show f0 > 0 ~0 show f1 > 0 ~1200; lag(count(*)) OVER (ORDER BY month) IS NULL {} delta 1; count(*) - lag(count(*)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, sum(amount) AS s, lag(sum(amount)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE b IS NULL OR s > 2 * b
--> [month 13] (f0 > 0 ~0 or f1 > 0 ~2700000); lag(sum(amount)) OVER (ORDER BY month) IS NULL {} delta 1; sum(amount) - 2 * lag(sum(amount)) OVER (ORDER BY month) {} delta 150000

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*), 1, 0) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE b IS NOT NULL AND n > b
--> [month 13] f0 > 0 ~1200; count(*) - lag(count(*), 1, 0) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER () AS total FROM sales GROUP BY month) q WHERE total IS NOT NULL AND n > 0.2 * total
--> [month 13] f0 > 0 ~4300; count(*) - 0.2 * sum(count(*)) OVER () {} delta 400

SELECT month FROM (SELECT month, sum(amount) - lag(sum(amount)) OVER (ORDER BY month) AS more FROM sales GROUP BY month) q WHERE more IS NOT NULL AND more > 5000
--> KH204 more

SELECT month, n > NULL OR n > 100 AS big FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q
--> [month 13] true show f0 > 100 ~10 else null; count(*) delta 100 in 0..100

SELECT month, n NOT IN (5, NULL) AS odd FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q
--> KH207 n

SELECT month, n > NULL AND n > 100 AS big FROM (SELECT month, count(*) AS n FROM sales GROUP BY month) q
--> KH207 n

SELECT month, (n - mean) / nullif(spread, 0) > 1 AS odd FROM (SELECT month, count(*) AS n, avg(count(*)) OVER w AS mean, stddev_pop(count(*)) OVER w AS spread FROM sales GROUP BY month WINDOW w AS (ORDER BY month ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)) q
--> [month 13] true show f0 > 0 ~288000; count(*) - avg(count(*)) OVER (ORDER BY month ROWS BETWEEN 5 PRECEDING AND CURRENT ROW) - stddev_pop(count(*)) OVER (ORDER BY month ROWS BETWEEN 5 PRECEDING AND CURRENT ROW) {} delta 10000

SELECT month FROM (SELECT month, count(*) AS n, sum(count(*)) OVER () AS t, avg(count(*)) OVER () AS a FROM sales GROUP BY month) q WHERE n > greatest(0.1 * t, 1.2 * a)
--> [month 13] (f0 > 0 ~21000 and f1 > 0 ~136500); count(*) - 0.1 * sum(count(*)) OVER () {} delta 900; count(*) - 1.2 * avg(count(*)) OVER () {} delta 5900

SELECT month FROM sales GROUP BY month HAVING count(*) < 2 * least((SELECT count(*) FROM sales) / 40.0, 500)
--> [month 13] (f0 <= -1 ~15200 and f1 <= 999 ~100); count(*) - 0.05 * sum(count(*)) OVER () {} delta 1900; count(*) delta 100 in 0..100

SELECT month FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE n > greatest(b, 100)
--> KH204 n

SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER () AS mu, variance(count(*)) OVER () AS v FROM sales GROUP BY month) q WHERE n > mu + 2 * sqrt(v)
--> [month 13] f0 > 0 ~67600; count(*) - avg(count(*)) OVER () - 2 * stddev_samp(count(*)) OVER () {} delta 2800

SELECT month FROM (SELECT month, count(*) AS n, var_pop(count(*)) OVER () AS v FROM sales GROUP BY month) q WHERE n > v
--> KH204 n

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), q AS (SELECT percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY n) AS p FROM m) SELECT m.month FROM m, q WHERE m.n > q.p[2]
--> [month 13] f0 > 0 ~4200; count(*) - percentile_cont(0.75) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 200

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), w AS (SELECT month, n, max(n) OVER () AS best FROM m) SELECT month FROM w WHERE n > 0.8 * best
--> [month 13] f0 > 0 ~8000; count(*) - 0.8 * max(count(*)) OVER () {} delta 500

WITH m AS (SELECT month, sum(amount) AS s FROM sales GROUP BY month), t AS (SELECT avg(s) AS mean FROM m), b AS (SELECT m.month, m.s, t.mean FROM m CROSS JOIN t) SELECT month FROM b WHERE s > 1.5 * mean
--> [month 13] f0 > 0 ~31200000; sum(amount) - 1.5 * avg(sum(amount)) OVER () {} delta 3450000

SELECT s.country, s.month FROM (SELECT country, month, count(*) AS n FROM sales GROUP BY country, month) s CROSS JOIN LATERAL (SELECT count(*) AS total FROM sales r WHERE r.country = s.country) t WHERE s.n > 0.2 * t.total
--> [country 4, month 13] f0 > 0 ~4300; count(*) - 0.2 * sum(count(*)) OVER (PARTITION BY "country") {} delta 400

SELECT country FROM sales GROUP BY country HAVING count(*) > (SELECT count(*)::numeric / count(DISTINCT country) FROM sales)
--> [country 4] f0 > 0 ~2760; count(*) - 0.25 * sum(count(*)) OVER () {} delta 300

SELECT country FROM sales GROUP BY country HAVING count(*) > 2 * (SELECT count(*) FROM sales) / (SELECT count(DISTINCT country) FROM sales)
--> [country 4] f0 > 0 ~1640; count(*) - 0.5 * sum(count(*)) OVER () {} delta 100

SELECT country FROM sales GROUP BY country HAVING count(*) > 10 * (SELECT count(DISTINCT country) FROM sales)
--> KH107 count(DISTINCT

SELECT country FROM sales GROUP BY country HAVING sum(amount) > (SELECT sum(amount) / count(DISTINCT month) FROM sales)
--> KH107 sum(amount)

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT month FROM m WHERE n > (SELECT sum(n) / count(*) FROM m)
--> [month 13] f0 > 0 ~9880; count(*) - 0.0769230769231 * sum(count(*)) OVER () {} delta 1200

SELECT country FROM sales GROUP BY country HAVING sum(CASE WHEN gift THEN 1 ELSE 0 END) > 0.2 * (SELECT sum(CASE WHEN gift THEN 1 ELSE 0 END) FROM sales)
--> [country 4] f0 > 0 ~3450; sum(CASE WHEN gift THEN 1 ELSE 0 END) - 0.2 * sum(sum(CASE WHEN gift THEN 1 ELSE 0 END)) OVER () {} delta 400

SELECT r.region FROM sales s JOIN regions r ON r.name = s.country GROUP BY r.region HAVING sum(s.amount) > 0.3 * (SELECT sum(amount) FROM sales)
--> [region 3] f0 > 0 ~9800000; sum(amount) - 0.3 * sum(sum(amount)) OVER () {} delta 1050000

SELECT r.region FROM sales s JOIN regions r ON r.name = s.country GROUP BY r.region HAVING count(*) > 0.3 * (SELECT count(*) FROM sales x JOIN regions y ON y.name = x.country)
--> [region 3] f0 > 0 ~6600; count(*) - 0.3 * sum(count(*)) OVER () {} delta 700

SELECT r.region FROM sales s JOIN regions r ON r.name = s.country GROUP BY r.region HAVING count(*) > 0.3 * (SELECT count(*) FROM sales x JOIN regions y ON y.region = x.country)
--> KH107 count(*)

WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month), q AS (SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY n) AS q1, percentile_cont(0.75) WITHIN GROUP (ORDER BY n) AS q3 FROM m) SELECT m.month FROM m, q WHERE m.n > q.q3 + 1.5 * (q.q3 - q.q1)
--> [month 13] f0 > 0 ~115200; count(*) - 2.5 * percentile_cont(0.75) WITHIN GROUP (ORDER BY count(*)) OVER () + 1.5 * percentile_cont(0.25) WITHIN GROUP (ORDER BY count(*)) OVER () {} delta 4000

SELECT month FROM (SELECT month, count(*) AS n, max(count(*)) OVER () AS hi, min(count(*)) OVER () AS lo FROM sales GROUP BY month) q WHERE n > (hi + lo) / 2.0
--> [month 13] f0 > 0 ~4800; count(*) - 0.5 * max(count(*)) OVER () - 0.5 * min(count(*)) OVER () {} delta 200

SELECT month FROM (SELECT month, count(*) AS n, max(count(*)) OVER () AS hi, avg(count(*)) OVER () AS mean FROM sales GROUP BY month) q WHERE n > (hi + mean) / 2.0
--> KH204 n

SELECT country FROM sales GROUP BY country HAVING sum(amount) / nullif(sum(quantity), 0) > 1.1 * (SELECT sum(amount) / nullif(sum(quantity), 0) FROM sales)
--> KH204 (SELECT

SELECT country FROM sales GROUP BY country HAVING sum(amount) FILTER (WHERE gift) / sum(amount) > (SELECT sum(amount) FILTER (WHERE gift) / sum(amount) FROM sales)
--> KH204 (SELECT

SELECT ward FROM visits GROUP BY ward HAVING (sum(cost) - sum(weight)) / sum(cost) < 0.05 + (SELECT (sum(cost) - sum(weight)) / sum(cost) FROM visits) AND sum(cost) > 2000000
--> KH107 sum(cost)

SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / sum(age) > (SELECT sum(cost) / sum(age) FROM visits)
--> KH206 sum(cost) else [ward 3] (f0 > 0 ~5100 and f1 > 49999 ~5000 and f2 > 139999 ~14000 and f3 > -1 ~2293200); sum(cost) / sum(age) - sum(sum(cost)) OVER () / sum(sum(age)) OVER () {} delta 10000; sum(age) delta 110; sum(sum(age)) OVER () {} delta 110; 91 * sum(sum(age)) OVER () - (sum(sum(cost)) OVER ()) {} delta 30020

SELECT month FROM (SELECT month, sum(amount) / sum(quantity) AS r, lag(sum(amount) / sum(quantity)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE r > b
--> KH204 r

SELECT country FROM sales GROUP BY country HAVING sum(quantity) / sum(amount) > (SELECT sum(quantity) / sum(amount) FROM sales)
--> KH204 (SELECT

SELECT ward FROM visits GROUP BY ward HAVING sum(cost) / sum(age) > (SELECT sum(age) / sum(cost) FROM visits)
--> KH204 sum(cost)

SELECT month, n > 1.2 * b AS up, n > avg(n) OVER () AS above FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q
--> [month 13] true show f0 > 0 ~16500 show f1 > 0 ~27300; count(*) - 1.2 * lag(count(*)) OVER (ORDER BY month) {} delta 500; count(*) - avg(count(*)) OVER () {} delta 1200

SELECT month FROM (SELECT month, n, b, avg(n) OVER () AS a FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q) p WHERE n > 1.2 * b AND n > a
--> [month 13] (f0 > 0 ~16500 and f1 > 0 ~27300); count(*) - 1.2 * lag(count(*)) OVER (ORDER BY month) {} delta 500; count(*) - avg(count(*)) OVER () {} delta 1200

SELECT month, n > 1.2 * b AS up, b > avg(b) OVER () AS above FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q
--> KH101 count(*)

SELECT month, n > avg(n) OVER () AS above FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE b > 100
--> KH101 count(*)

SELECT country, width_bucket(1.0 * count(*) / (SELECT count(*) FROM sales), ARRAY[0.05, 0.1]) AS band FROM sales GROUP BY country
--> [country 4] true show f0 > -1 ~42000 show f1 > -1 ~20000; count(*) - 0.05 * sum(count(*)) OVER () {} delta 1900; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT month, width_bucket(n::numeric / nullif(b, 0), ARRAY[0.8, 1.2]) AS band FROM (SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q
--> [month 13] true show (f0 > -1 ~23000 and f1 > 0 ~3700) show (f2 > -1 ~28000 and f1 > 0 ~3700); count(*) - 0.8 * lag(count(*)) OVER (ORDER BY month) {} delta 500; lag(count(*)) OVER (ORDER BY month) {} delta 1; count(*) - 1.2 * lag(count(*)) OVER (ORDER BY month) {} delta 500

SELECT country, width_bucket(share, ARRAY[0.05, 0.1]) FROM (SELECT country, 1.0 * count(*) / sum(count(*)) OVER () AS share FROM sales GROUP BY country) q
--> [country 4] true show f0 > -1 ~42000 show f1 > -1 ~20000; count(*) - 0.05 * sum(count(*)) OVER () {} delta 1900; count(*) - 0.1 * sum(count(*)) OVER () {} delta 900

SELECT country FROM sales GROUP BY country HAVING avg(amount) > (SELECT avg(a) FROM (SELECT avg(amount) AS a FROM sales GROUP BY country) q)
--> KH206 avg(amount) else [country 4] (f0 > 0 ~14000 and f1 > 44999 ~4500 and f2 > 49999 ~5000); avg(amount) - avg(avg(amount)) OVER () {} delta 150000; min(count(amount)) OVER () {} delta 100; count(amount) delta 100 in 0..100

WITH t AS (SELECT country, month, avg(amount) AS a FROM sales GROUP BY country, month) SELECT country, month FROM t WHERE a > 1.1 * (SELECT avg(u.a) FROM t u WHERE u.country = t.country)
--> KH206 a else [country 4, month 13] (f0 > 0 ~14000 and f1 > 44999 ~4500 and f2 > 49999 ~5000); avg(amount) - 1.1 * avg(avg(amount)) OVER (PARTITION BY "country") {} delta 150000; min(count(amount)) OVER (PARTITION BY "country") {} delta 100; count(amount) delta 100 in 0..100

SELECT month FROM (SELECT month, avg(amount) AS a, avg(avg(amount)) OVER (ORDER BY month ROWS 3 PRECEDING) AS m FROM sales GROUP BY month) q WHERE a > m
--> KH204

SELECT country FROM sales GROUP BY country HAVING count(*) > (SELECT avg(a) FROM (SELECT avg(amount) AS a FROM sales GROUP BY country) q)
--> KH204 count(*)

SELECT country FROM sales GROUP BY country HAVING avg(amount) > (SELECT avg(a) FROM (SELECT avg(amount) AS a FROM sales GROUP BY month) q)
--> KH107 avg(a)

SELECT country FROM (SELECT country, avg(amount) AS a, avg(avg(amount)) OVER () AS m, stddev(avg(amount)) OVER () AS s FROM sales GROUP BY country) q WHERE a > m + 2 * s
--> KH204

SELECT country FROM (SELECT country, avg(amount) AS a, avg(avg(amount)) OVER (PARTITION BY country) AS m FROM sales GROUP BY country) q WHERE a > m
--> KH204 a

SELECT country FROM (SELECT country, sum(quantity) / count(*) AS a FROM sales GROUP BY country) q WHERE a > (SELECT avg(a) FROM (SELECT sum(quantity) / count(*) AS a FROM sales GROUP BY country) p)
--> KH204 a

WITH t AS (SELECT country, sum(amount) / count(DISTINCT customer_id) AS a FROM sales GROUP BY country) SELECT country FROM t WHERE a > (SELECT avg(a) FROM t)
--> KH204 a

SELECT country FROM (SELECT country, avg(amount) AS a, max(avg(amount)) OVER () AS m FROM sales GROUP BY country) q WHERE a >= 0.9 * m
--> KH204

SELECT country FROM sales GROUP BY country HAVING avg(amount) > (SELECT avg(a) FROM (SELECT avg(amount) AS a FROM sales WHERE gift GROUP BY country) q)
--> KH206 avg(amount) else [country 4] (f0 > 0 ~14000 and f1 > 44999 ~4500 and f2 > 49999 ~5000); avg(amount) - avg(avg(amount) FILTER(WHERE (gift))) OVER () {} delta 150000; min(count(amount) FILTER(WHERE (gift))) OVER () {} delta 100; count(amount) delta 100 in 0..100

WITH t AS (SELECT country, sum(amount) / count(*) AS a FROM sales GROUP BY country) SELECT country FROM t WHERE a > (SELECT avg(a) FROM t)
--> KH206 a else [country 4] (f0 > 0 ~10000 and f1 > 89999 ~9000 and f2 > 99999 ~10000); sum(amount) / count(*) - avg(sum(amount) / count(*)) OVER () {} delta 150000; min(count(*)) OVER () {} delta 100; count(amount) delta 100 in 0..100

SELECT country FROM (SELECT s.country, r.region, count(*) AS n, avg(count(*)) OVER (PARTITION BY r.region) AS m FROM sales s JOIN regions r ON r.name = s.country GROUP BY s.country, r.region) q WHERE n < 0.7 * m
--> [country 4] f0 <= -1 ~11800; count(*) - 0.7 * avg(count(*)) OVER (PARTITION BY r.region) {} delta 1300

SELECT country FROM (SELECT s.country, sum(amount) AS n, lag(sum(amount)) OVER (ORDER BY r.region) AS m FROM sales s JOIN regions r ON r.name = s.country GROUP BY s.country, r.region) q WHERE n > m
--> KH204 n
