-- # What analysts write about a help desk's tickets, customers protected, by the families of docs/asking.md.
-- # numbers
SELECT category, priority, COUNT(*) AS tickets, AVG(minutes_spent) AS avg_minutes FROM tickets GROUP BY category, priority HAVING COUNT(*) > 300 ORDER BY tickets DESC
--> planned

SELECT a.team, COUNT(DISTINCT t.customer_id) AS customers FROM tickets t JOIN agents a ON a.agent_id = t.agent_id GROUP BY a.team HAVING COUNT(DISTINCT t.customer_id) > 400 ORDER BY customers DESC
--> planned

SELECT channel, AVG(closed_at - opened_at) AS resolution_time FROM tickets WHERE status = 'closed' GROUP BY channel HAVING COUNT(*) > 200
--> planned

SELECT channel, ROUND(AVG(EXTRACT(EPOCH FROM (first_reply_at - opened_at)) / 3600)::numeric, 1) AS hours_to_reply FROM tickets GROUP BY channel HAVING COUNT(*) > 500
--> planned

SELECT category, SUM(CASE WHEN status = 'open' THEN 1 ELSE 0 END) AS open, SUM(CASE WHEN status = 'closed' THEN 1 ELSE 0 END) AS closed FROM tickets GROUP BY category HAVING SUM(CASE WHEN status = 'open' THEN 1 ELSE 0 END) > 1000
--> planned

SELECT c.country, c.plan, COUNT(*) FROM tickets t JOIN customers c ON t.customer_id = c.customer_id GROUP BY c.country, c.plan HAVING COUNT(*) > 500
--> planned

-- # key
SELECT CASE WHEN first_reply_at - opened_at <= INTERVAL '1 hour' THEN 'within SLA' ELSE 'breached' END AS sla, priority FROM tickets GROUP BY 1, 2 HAVING COUNT(*) > 200
--> planned

SELECT DATE_TRUNC('month', opened_at)::date AS month, category FROM tickets WHERE opened_at >= '2024-01-01' AND opened_at < '2025-01-01' GROUP BY 1, 2 HAVING COUNT(*) > 150
--> planned

SELECT COALESCE(satisfaction::text, 'n/a') AS score, COUNT(*) FROM tickets GROUP BY 1 HAVING COUNT(*) > 1000
--> planned

SELECT satisfaction, count(*) FROM tickets GROUP BY satisfaction HAVING count(*) > 1000
--> planned

SELECT status IN ('solved', 'closed') AS done, channel FROM tickets GROUP BY 1, channel HAVING count(*) > 2000
--> planned

SELECT CASE WHEN subject ILIKE '%refund%' THEN 'refund' WHEN subject ILIKE '%log in%' OR subject ILIKE '%password%' THEN 'access' ELSE 'other' END AS topic, count(DISTINCT customer_id) FROM tickets GROUP BY topic HAVING count(DISTINCT customer_id) > 300
--> planned

SELECT EXTRACT(EPOCH FROM closed_at - opened_at)::int / 86400 AS days FROM tickets WHERE closed_at - opened_at < interval '14 days' GROUP BY 1 HAVING count(*) > 300
--> KH202

SELECT DATE_PART('day', closed_at - opened_at) AS days_open, COUNT(*) FROM tickets WHERE status = 'closed' GROUP BY 1 HAVING COUNT(*) > 200
--> KH202

SELECT initcap(priority) || ' priority' AS label FROM tickets GROUP BY initcap(priority) || ' priority' HAVING count(*) > 1000
--> planned

SELECT concat_ws(' / ', category, channel) AS what FROM tickets GROUP BY 1 HAVING count(*) > 500
--> planned

SELECT a.country, date_trunc('month', t.week) AS m FROM tickets t, agents a WHERE t.agent_id = a.agent_id GROUP BY a.country, date_trunc('month', t.week) HAVING count(*) > 500
--> planned

SELECT minutes_spent / 30 * 30 AS "from", minutes_spent / 30 * 30 + 29 AS "to" FROM tickets GROUP BY 1, 2 HAVING COUNT(*) > 1000
--> planned

SELECT replies = 0 AS no_reply, reopened FROM tickets GROUP BY 1, 2 HAVING COUNT(*) > 1000
--> planned

SELECT date_trunc('year', c.signed_up) AS cohort FROM tickets t JOIN customers c USING (customer_id) WHERE c.signed_up >= '2021-01-01' AND c.signed_up < '2024-01-01' GROUP BY 1 HAVING count(DISTINCT t.customer_id) > 200
--> planned

-- # row
SELECT priority FROM tickets WHERE first_reply_at > opened_at + CASE priority WHEN 'urgent' THEN INTERVAL '1 hour' WHEN 'high' THEN INTERVAL '4 hours' ELSE INTERVAL '1 day' END GROUP BY priority HAVING COUNT(*) > 100
--> planned

SELECT category FROM tickets WHERE EXTRACT(EPOCH FROM closed_at - opened_at) / 3600.0 > 72 GROUP BY category HAVING COUNT(*) > 400
--> planned

SELECT category FROM tickets WHERE DATE(opened_at) = DATE(closed_at) GROUP BY category HAVING COUNT(*) > 50
--> planned

SELECT category FROM tickets WHERE char_length(trim(subject)) > 15 AND position('refund' IN lower(subject)) > 0 GROUP BY category HAVING COUNT(*) > 50
--> planned

SELECT channel FROM tickets WHERE opened_at::date BETWEEN '2024-11-25' AND '2024-12-01' AND NOT (status = 'closed' AND satisfaction IS NULL) GROUP BY channel HAVING COUNT(*) > 50
--> planned

SELECT category FROM tickets WHERE satisfaction <= 2 AND (reopened OR replies > 3) GROUP BY category HAVING COUNT(DISTINCT customer_id) > 60
--> planned

SELECT t.category FROM tickets t JOIN customers c ON c.customer_id = t.customer_id WHERE t.opened_at < c.signed_up + interval '2 years' GROUP BY t.category HAVING count(DISTINCT t.customer_id) > 100
--> planned

SELECT category FROM tickets GROUP BY category HAVING sum(minutes_spent * 0.75) > 50000
--> planned

SELECT category FROM tickets WHERE opened_at > now() - interval '30 days' GROUP BY category HAVING count(*) > 100
--> planned

-- # guard
SELECT category FROM tickets GROUP BY category HAVING avg(satisfaction) < 3.5
--> planned

SELECT agent_id FROM tickets GROUP BY agent_id HAVING avg(satisfaction) >= 4 AND count(satisfaction) >= 100
--> planned

SELECT category FROM tickets GROUP BY category HAVING (COUNT(*) FILTER (WHERE satisfaction >= 4) - COUNT(*) FILTER (WHERE satisfaction <= 2))::float / COUNT(satisfaction) > 0.1
--> planned

SELECT category FROM tickets GROUP BY category HAVING COUNT(*) FILTER (WHERE reopened) * 100 / COUNT(*) >= 10
--> planned

SELECT channel FROM tickets GROUP BY channel HAVING AVG(EXTRACT(EPOCH FROM first_reply_at - opened_at)) < 4 * 3600
--> planned

SELECT channel FROM tickets GROUP BY channel HAVING percentile_cont(0.9) WITHIN GROUP (ORDER BY minutes_spent) > 120
--> planned

SELECT category FROM tickets GROUP BY category HAVING AVG(minutes_spent) FILTER (WHERE channel = 'phone') > AVG(minutes_spent) FILTER (WHERE channel = 'email')
--> planned

SELECT category, channel FROM tickets GROUP BY GROUPING SETS ((category), (channel), ()) HAVING count(*) > 2000
--> planned

SELECT channel FROM tickets GROUP BY channel HAVING count(*) > 1000 AND NOT (avg(replies) > 3 AND avg(satisfaction) < 3)
--> planned

SELECT category FROM tickets GROUP BY category HAVING COUNT(*) FILTER (WHERE status = 'open')::numeric / NULLIF(COUNT(*) FILTER (WHERE status = 'closed'), 0) > 0.9
--> planned

-- # rank
SELECT a.agent_name, COUNT(*) AS solved FROM tickets t JOIN agents a USING (agent_id) WHERE t.status IN ('solved','closed') GROUP BY a.agent_name ORDER BY solved DESC LIMIT 10
--> planned

SELECT category FROM tickets GROUP BY category HAVING count(satisfaction) > 100 ORDER BY avg(satisfaction) LIMIT 1
--> planned

SELECT team, agent_name FROM (SELECT a.team, a.agent_name, ROW_NUMBER() OVER (PARTITION BY a.team ORDER BY COUNT(*) DESC) r FROM tickets t JOIN agents a ON a.agent_id = t.agent_id GROUP BY a.team, a.agent_name) s WHERE r <= 3
--> planned

SELECT category, channel, percent_rank() OVER (ORDER BY count(*) DESC) AS pr FROM tickets GROUP BY category, channel
--> planned

SELECT priority, category FROM (SELECT priority, category, count(*) AS n, max(count(*)) OVER (PARTITION BY priority) AS m FROM tickets GROUP BY priority, category) z WHERE n = m
--> planned

-- # text
SELECT channel, COUNT(*) AS n, CASE WHEN COUNT(*) > 9000 THEN 'busy' WHEN COUNT(*) > 5000 THEN 'normal' ELSE 'quiet' END AS load FROM tickets GROUP BY channel
--> planned

SELECT category, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM tickets GROUP BY category
--> KH101

SELECT customer_id FROM tickets GROUP BY customer_id HAVING COUNT(*) >= 3 AND MIN(satisfaction) <= 2
--> KH202

SELECT COUNT(*) FROM (SELECT customer_id FROM tickets GROUP BY customer_id HAVING COUNT(*) > 5) x
--> KH202

SELECT c.country FROM customers c LEFT JOIN tickets t ON t.customer_id = c.customer_id WHERE t.ticket_id IS NULL GROUP BY c.country HAVING COUNT(*) > 20
--> KH107

SELECT plan, country FROM customers GROUP BY plan, country HAVING SUM(mrr) > 20000
--> planned

SELECT week, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY week) AS running FROM tickets GROUP BY week HAVING COUNT(*) > 700
--> planned

SELECT category FROM tickets GROUP BY category HAVING avg(age(closed_at, opened_at)) > interval '2 days'
--> KH204

SELECT category FROM tickets GROUP BY category HAVING sum(closed_at - opened_at) > interval '300 days'
--> planned
SELECT category, priority ~ '^(high|urgent)$' AS pressing FROM tickets WHERE subject ~* '^re:' AND subject !~ 'spam|^test$' AND subject NOT SIMILAR TO 'fwd_%' GROUP BY 1, 2 HAVING count(*) > 50
--> planned

SELECT category FROM tickets WHERE subject ~ 'order [0-9]+' GROUP BY category HAVING count(*) > 50
--> planned

-- # values of one unit's own rows
SELECT c.plan FROM customers c JOIN (SELECT customer_id, min(opened_at) AS first FROM tickets GROUP BY customer_id) t USING (customer_id) WHERE t.first < c.signed_up + interval '1 month' GROUP BY c.plan HAVING count(*) > 20
--> planned

SELECT category FROM (SELECT category, row_number() OVER (PARTITION BY customer_id ORDER BY opened_at DESC) AS rn FROM tickets) t WHERE rn = 1 GROUP BY category HAVING count(*) > 20
--> planned

SELECT category, extract(epoch FROM first_reply_at - opened_at) / 3600 > 4 AS late FROM tickets WHERE first_reply_at IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 100
--> planned

SELECT CASE WHEN satisfaction >= 4 THEN 'promoter' WHEN satisfaction <= 2 THEN 'detractor' ELSE 'passive' END AS kind, channel FROM tickets WHERE satisfaction IS NOT NULL GROUP BY kind, channel HAVING count(DISTINCT customer_id) >= 50
--> planned

SELECT date_part('isodow', opened_at) AS dow, date_part('hour', opened_at) AS hr FROM tickets GROUP BY 1, 2 HAVING count(*) > 60
--> planned

SELECT category FROM tickets WHERE subject ILIKE '%refund%' OR subject ILIKE '%charge%' GROUP BY category HAVING count(*) > 80
--> planned

SELECT category, ntile(3) OVER (ORDER BY avg(satisfaction) DESC) AS third FROM tickets GROUP BY category HAVING count(satisfaction) > 200
--> planned

SELECT priority FROM tickets GROUP BY priority HAVING percentile_cont(0.9) WITHIN GROUP (ORDER BY minutes_spent) > 120 AND avg(replies) < 4
--> planned

SELECT status, round(minutes_spent / 30.0) * 30 AS effort FROM tickets GROUP BY 1, 2 HAVING count(*) > 50
--> planned
