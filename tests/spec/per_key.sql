-- # Thresholds that a key determines, over the tables of tests/planner/aggregates/test_key_thresholds.py.

SELECT v.room, v.hour, r.capacity FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, v.hour, r.capacity HAVING count(*) > 0.8 * r.capacity
--> [room 3, hour 3] f0 > 16 ~1; count(*) less 0 64 144 by room

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room HAVING count(*) > max(r.capacity)
--> [room 3] f0 > 20 ~2; count(*) less 0 80 180 by room

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room HAVING max(r.capacity) < count(*)
--> [room 3] f0 > 20 ~2; count(*) less 0 80 180 by room

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room WHERE r.capacity IS NOT NULL GROUP BY v.room HAVING count(*) < max(r.capacity)
--> KH206

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room HAVING count(*) < max(r.capacity) AND count(*) >= 10
--> [room 3] (f0 <= 19 ~2 and f1 > 9 ~1); count(*) less 0 80 180 by room; count(*)

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) < r.capacity
--> [room 3] f0 <= 19 ~2; count(*) less 0 80 180 by room

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) = r.capacity
--> [room 3] (f0 > 19 ~2 and f0 <= 20 ~2); count(*) less 0 80 180 by room

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) = 0.125 * r.capacity
--> KH208

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING 100.0 * count(*) / r.capacity > 80
--> [room 3] f0 > 16 ~1; count(*) less 0 64 144 by room

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) / r.capacity > 1
--> KH204

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING sum(v.age) - 3 * count(*) > 40 * r.capacity * r.share
--> [room 3] f0 > 400 ~40; sum(age) - 3 * count(*) less 0 600 5600 by room

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room WHERE r.capacity > 50 GROUP BY v.room, r.capacity HAVING count(*) > r.capacity
--> [room 2] f0 > 100 ~10; count(*) less 0 100 by room

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) > r.capacity AND r.capacity > 50
--> [room 2] f0 > 100 ~10; count(*) less 0 100 by room

SELECT v.room FROM visits v LEFT JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) > coalesce(r.capacity, 30)
--> [room 4] f0 > 20 ~2; count(*) less 0 80 10 180 by room

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) > r.capacity OR count(*) > 500
--> KH208

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING count(*) > r.capacity OR sum(v.age) > 30 * r.capacity
--> [room 3] (f0 > 20 ~2 or f1 > 600 ~60); count(*) less 0 80 180 by room; sum(age) less 0 2400 5400 by room

SELECT v.room, b.quota FROM visits v JOIN rooms r ON v.room = r.room JOIN buildings b ON r.building = b.id GROUP BY v.room, b.quota HAVING count(*) > b.quota
--> [room 4] f0 > 50 ~5; count(*) less 0 0 30 30 by room

SELECT r.building, b.quota FROM visits v JOIN rooms r ON v.room = r.room JOIN buildings b ON r.building = b.id GROUP BY r.building, b.quota HAVING count(*) > b.quota
--> [id 2] f0 > 50 ~5; count(*) less 0 30 by id

SELECT hour FROM visits GROUP BY hour HAVING count(*) > 10 * hour + 20
--> [hour 3] f0 > 20 ~2; count(*) less 0 10 20 by hour

SELECT hour FROM visits GROUP BY hour HAVING count(*) > 10 * hour
--> KH304

SELECT v.hour FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.hour HAVING count(*) > max(r.capacity)
--> KH208

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, v.hour, r.capacity HAVING count(*) > r.capacity + v.hour
--> KH208

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.factor HAVING count(*) > 100 * r.factor
--> KH208

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING avg(v.age) > r.capacity
--> [room 4] f0 > 0 ~2; avg(age) - r.capacity

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room HAVING avg(v.age) + count(*) > max(r.capacity)
--> KH204

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room HAVING avg(v.age) FILTER (WHERE v.hour = 1) > 2 * max(r.share) + 1
--> [room 4] f0 > 0 ~7; avg(age) FILTER (WHERE v.hour = 1) - (2 * r.share + 1)

SELECT v.hour FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.hour HAVING avg(v.age) > max(r.capacity)
--> KH208

SELECT v.room FROM visits v JOIN rooms r ON v.room = r.room GROUP BY v.room, r.capacity HAVING r.capacity * count(*) > 100
--> KH204
