-- # Calendars joined from the left: their rows are groups, with rows of data or without.
SELECT c.month FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY c.month HAVING count(s.amount) < 400
--> [month 13] f0 <= 399 ~40; count(amount) delta 100 in 0..100

SELECT c.month FROM generate_series(DATE '2011-01-01', DATE '2011-06-01', interval '1 month') AS c(month) LEFT JOIN sales s ON date_trunc('month', s.invoice_date) = c.month AND s.gift GROUP BY c.month HAVING count(s.amount) < 400
--> [month 6] where "gift" = true f0 <= 399 ~40; count(amount) delta 100 in 0..100

SELECT c.month FROM generate_series('2011-01-01'::timestamp, '2011-06-01', '2 months') AS c(month) LEFT JOIN sales s ON s.invoice_date >= c.month AND s.invoice_date < c.month + interval '1 month' GROUP BY c.month HAVING sum(s.amount) > 10000
--> [month 3] f0 > 1000000 ~100000; sum(amount) delta 150000 in -100000..150000

SELECT c::date FROM generate_series(DATE '2011-01-01', DATE '2011-06-01', interval '1 month') c LEFT JOIN sales s ON s.month = c AND s.invoice_date >= '2011-02-11' GROUP BY c HAVING count(*) > 400
--> [month 6] f0 > 400 ~40; count(month) FILTER (WHERE (s.invoice_date >= '2011-02-11')) delta 100 in 0..100

SELECT c.month, sum(CASE WHEN s.gift THEN 1 ELSE 0 END) < 400 AS few FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY 1
--> [month 13] true show f0 <= 399 ~40; coalesce(sum(CASE WHEN s.gift THEN 1 ELSE 0 END), 0) delta 100 in 0..100

SELECT c.month FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month WHERE s.gift AND c.month > '2011-03-01' GROUP BY c.month HAVING sum(s.amount) > 10000
--> [month 9] where "gift" = true f0 > 1000000 ~100000; sum(amount) delta 150000 in -100000..150000

SELECT month FROM (SELECT c.month, count(s.amount) AS n, lag(count(s.amount)) OVER (ORDER BY c.month) AS p FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY c.month) t WHERE n > 1.2 * p
--> [month 13] f0 > 0 ~6500; count(amount) - 1.2 * lag(count(s.amount)) OVER (ORDER BY s.month) {} delta 500

WITH months AS (SELECT generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month')::date AS month), n AS (SELECT m.month, coalesce(sum(s.amount), 0) AS v FROM months m LEFT JOIN sales s ON s.month = m.month GROUP BY m.month) SELECT month FROM (SELECT month, v, sum(v) OVER (ORDER BY month ROWS 2 PRECEDING) AS w FROM n) t WHERE w > 100000
--> [month 13] f0 > 10000000 ~1000000; sum(coalesce(sum(s.amount), 0)) OVER (ORDER BY s.month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) {} delta 150000

WITH months AS (SELECT generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month')::date AS month), p AS (SELECT month, sum(amount) AS v FROM sales GROUP BY month) SELECT m.month FROM months m LEFT JOIN p ON p.month = m.month WHERE coalesce(p.v, 0) < 10000
--> [month 13] f0 <= 999999 ~100000; coalesce(sum(amount), 0) delta 150000 in -100000..150000

SELECT month FROM (SELECT c.month, coalesce(p.n, 0) AS n, lag(coalesce(p.n, 0)) OVER (ORDER BY c.month) AS b FROM generate_series(DATE '2011-01-01', DATE '2011-06-01', interval '1 month') AS c(month) LEFT JOIN (SELECT month, count(*) AS n FROM sales WHERE gift GROUP BY month) p ON p.month = c.month) t WHERE n > b
--> [month 6] where "gift" = true f0 > 0 ~1200; coalesce(count(*), 0) - lag(coalesce(count(*), 0)) OVER (ORDER BY month) {} delta 100

SELECT month FROM (SELECT c.month, p.n, avg(p.n) OVER () AS b FROM generate_series(DATE '2011-01-01', DATE '2011-06-01', interval '1 month') AS c(month) LEFT JOIN (SELECT month, count(*) AS n FROM sales WHERE gift GROUP BY month) p ON p.month = c.month) t WHERE n > b
--> KH107 p.n,

SELECT month FROM (SELECT c.month, p.n, lag(coalesce(p.n, 0)) OVER (ORDER BY c.month) AS b FROM generate_series(DATE '2011-01-01', DATE '2011-06-01', interval '1 month') AS c(month) LEFT JOIN (SELECT month, count(*) AS n FROM sales WHERE gift GROUP BY month) p ON p.month = c.month) t WHERE n < b
--> KH107 p.n,

SELECT c.month FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', '0 months 1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY c.month HAVING count(s.amount) < 400
--> [month 13] f0 <= 399 ~40; count(amount) delta 100 in 0..100

SELECT c.month, r.name FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) CROSS JOIN regions r LEFT JOIN sales s ON s.month = c.month AND s.country = r.name GROUP BY c.month, r.name HAVING count(s.amount) < 400
--> [month 13, country 4] f0 <= 399 ~40; count(amount) delta 100 in 0..100

SELECT c.month, r.region FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) CROSS JOIN regions r LEFT JOIN sales s ON s.month = c.month AND s.country = r.name GROUP BY c.month, r.region HAVING count(s.amount) < 400
--> [month 13, region 3] f0 <= 399 ~40; count(amount) delta 100 in 0..100

SELECT k.country FROM (VALUES ('France'), ('Germany')) AS k(country) LEFT JOIN sales s ON s.country = k.country GROUP BY k.country HAVING count(s.amount) < 400
--> [country 2] f0 <= 399 ~40; count(amount) delta 100 in 0..100

SELECT c.month FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY c.month HAVING count(*) < 1
--> KH107 count(*)

SELECT c.month FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY c.month HAVING count(coalesce(s.amount, 0)) > 400
--> KH107 count(coalesce(s.amount,

SELECT c.month FROM generate_series(DATE '2010-12-01', DATE '2012-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY c.month HAVING count(s.amount) < 400
--> KH107 s.month

SELECT c.month FROM generate_series(DATE '2010-12-01', current_date, interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY c.month HAVING count(s.amount) < 400
--> KH107 generate_series(DATE

SELECT c.h FROM generate_series(DATE '2010-12-01', DATE '2010-12-03', interval '1 hour') AS c(h) LEFT JOIN sales s ON date_trunc('hour', s.invoice_date) = c.h GROUP BY c.h HAVING count(s.amount) < 400
--> KH107 generate_series(DATE

SELECT c.month, s.country FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY c.month, s.country HAVING count(s.amount) < 400
--> KH107 s.country

SELECT c.month FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month WHERE s.gift IS NULL GROUP BY c.month HAVING count(s.amount) < 400
--> KH107 s.gift

SELECT c.n FROM generate_series(1, 12) AS c(n) LEFT JOIN sales s ON s.quantity = c.n GROUP BY c.n HAVING count(s.amount) < 400
--> KH107 sales

SELECT month FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month GROUP BY c.month HAVING count(s.amount) < 400
--> KH107 generate_series(DATE

WITH p AS (SELECT month, count(*) AS n FROM sales GROUP BY month) SELECT c.month FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN p ON p.month = c.month WHERE p.n IS NULL
--> KH101 count(*)

SELECT c.month, count(s.amount) < 400 AS few FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month WHERE extract(month FROM c.month) > 9 GROUP BY c.month
--> [month 4] true show f0 <= 399 ~40; count(amount) delta 100 in 0..100

SELECT c.month FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) LEFT JOIN sales s ON s.month = c.month WHERE c.month < '2010-01-01' GROUP BY c.month HAVING count(s.amount) < 400
--> [month 0] where false f0 <= 399 ~40; count(amount) delta 1 in 0..0

SELECT r.name FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) CROSS JOIN regions r LEFT JOIN sales s ON s.month = c.month AND s.country = r.name GROUP BY r.name HAVING count(s.amount) < 400
--> [country 4] where ("month" <= date '2011-12-01' AND "month" >= date '2010-12-01') f0 <= 399 ~40; count(amount) delta 100 in 0..100

SELECT r.name FROM generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month) CROSS JOIN regions r LEFT JOIN sales s ON s.month = c.month AND s.country = r.name AND r.region > 'A' GROUP BY r.name HAVING count(s.amount) < 400
--> KH107 r.region
