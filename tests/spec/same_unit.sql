-- # Private tables with the same privacy units; the catalog is tests/worlds/people.py.
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id
WHERE p.sex = 'f' GROUP BY s.ward HAVING count(*) > 100
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
SELECT s.ward FROM patients p JOIN stays s USING (patient_id) WHERE sex = 'f' GROUP BY s.ward HAVING count(*) > 100
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
SELECT s.ward FROM stays s, patients p WHERE (p.patient_id) = s.patient_id AND sex = 'f' GROUP BY 1 HAVING count(*) > 100
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
SELECT s.ward FROM stays s CROSS JOIN patients p WHERE s.patient_id = p.patient_id GROUP BY s.ward HAVING count(*) > 100
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
SELECT sex FROM stays JOIN patients USING (patient_id) GROUP BY sex HAVING sum(cost) > 100
--> stays JOIN patients by sex, 2 groups of 40 rows
SELECT sex, s.ward FROM stays s JOIN patients USING (patient_id) GROUP BY sex, s.ward HAVING avg(age) > 50
--> stays JOIN patients by sex, stays.ward, 4 groups of 40 rows
SELECT kind FROM patients p JOIN labs ON person = patient_id GROUP BY kind HAVING count(DISTINCT person) > 10
--> labs JOIN patients by kind, 1 groups of 6 rows
SELECT year FROM stays s JOIN patients p USING (patient_id) JOIN labs l ON l.person = p.patient_id GROUP BY year HAVING count(*) > 5
--> stays JOIN labs JOIN patients by year, 2 groups of 120 rows
SELECT floor FROM stays s JOIN patients p USING (patient_id) JOIN wards w ON w.name = s.ward GROUP BY floor HAVING count(*) > 5
--> stays JOIN patients by floor, 2 groups of 40 rows
SELECT s.ward FROM stays s LEFT JOIN wards w ON w.name = s.ward JOIN patients p USING (patient_id) GROUP BY s.ward HAVING count(*) FILTER (WHERE floor = 2 AND sex = 'm') > 5
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
SELECT public.stays.ward FROM stays JOIN public.patients ON public.patients.patient_id = stays.patient_id AND sex = 'm' GROUP BY stays.ward HAVING count(*) > 100
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
-- # What does not join on the whole unit.
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id OR p.sex = 'f' GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN patients p ON NOT p.patient_id = s.patient_id GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id >= s.patient_id GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id::text = s.patient_id::text GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id + 0 = s.patient_id GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.stay_id GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN patients p ON s.patient_id = s.patient_id GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN patients p USING (ward) GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN patients p USING (patient_id, ward) GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s, patients p GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN patients p USING (patient_id) JOIN labs l ON l.person = 3 GROUP BY s.ward HAVING count(*) > 100
--> KH107 labs
SELECT s.ward FROM stays s LEFT JOIN patients p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s FULL JOIN patients p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s NATURAL JOIN patients p GROUP BY s.ward HAVING count(*) > 100
--> KH107 patients
SELECT s.ward FROM stays s JOIN stays t USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--> KH107 stays
SELECT s.ward FROM stays s JOIN staff p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--> KH107 staff
SELECT s.ward FROM capped s JOIN patients p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--> KH107 capped
SELECT s.ward FROM stays s JOIN (SELECT * FROM patients LIMIT 9) p USING (patient_id) GROUP BY s.ward HAVING count(*) > 100
--> KH107 *
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id AND p.ward = s.ward GROUP BY s.ward HAVING count(*) > 100
--> KH205 s.ward
-- # Names that mean two things, or nothing.
SELECT ward FROM stays JOIN patients USING (patient_id) GROUP BY ward HAVING count(*) > 100
--> KH201 ward
SELECT s.ward FROM stays s JOIN patients p ON p.patient_id = s.patient_id WHERE patient_id = 3 GROUP BY s.ward HAVING count(*) > 100
--> KH201 patient_id
SELECT s.sex FROM stays s JOIN patients p USING (patient_id) GROUP BY s.sex HAVING count(*) > 100
--> KH201 s.sex
SELECT "stays.ward" FROM stays s JOIN patients p USING (patient_id) GROUP BY 1 HAVING count(*) > 100
--> KH201 "stays.ward"
-- # Rows of both are never shown, and totals per unit read one table.
SELECT s.ward, p.sex FROM stays s JOIN patients p USING (patient_id)
--> KH103 stays
SELECT ward FROM (SELECT s.ward, s.patient_id, count(*) n FROM stays s JOIN patients p USING (patient_id) GROUP BY 1, 2) v WHERE n > 3 GROUP BY ward HAVING count(*) > 5
--> KH110 stays
-- # Outer joins whose made-up rows count for nothing are inner ones.
SELECT s.ward FROM stays s LEFT JOIN patients p USING (patient_id) WHERE p.sex = 'f' GROUP BY s.ward HAVING count(*) > 100
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
SELECT s.ward FROM stays s LEFT OUTER JOIN patients p ON p.patient_id = s.patient_id AND s.age > 3 WHERE p.sex IS NOT NULL GROUP BY s.ward HAVING count(*) > 100
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
SELECT p.sex FROM stays s LEFT JOIN patients p ON p.patient_id = s.patient_id GROUP BY 1 HAVING count(*) > 100
--> stays JOIN patients by sex, 2 groups of 40 rows
SELECT p.sex FROM patients p LEFT JOIN stays s ON s.patient_id = p.patient_id GROUP BY p.sex HAVING count(s.cost) > 100 ORDER BY 1
--> stays JOIN patients by sex, 2 groups of 40 rows
SELECT s.ward FROM stays s LEFT JOIN patients p USING (patient_id) GROUP BY s.ward HAVING count(*) FILTER (WHERE p.sex = 'f' AND s.age > 3) > 100
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
SELECT p.sex FROM stays s RIGHT JOIN patients p ON p.patient_id = s.patient_id WHERE s.age > 3 OR s.ward = 'A' GROUP BY p.sex HAVING count(*) > 100
--> stays JOIN patients by sex, 2 groups of 40 rows
SELECT s.ward FROM stays s FULL JOIN patients p ON p.patient_id = s.patient_id WHERE p.sex = 'f' GROUP BY s.ward HAVING count(*) > 100
--> stays JOIN patients by stays.ward, 2 groups of 40 rows
SELECT floor FROM patients p LEFT JOIN stays s ON s.patient_id = p.patient_id LEFT JOIN wards w ON w.name = s.ward WHERE w.floor > 1 GROUP BY floor HAVING count(*) > 5
--> stays JOIN patients by floor, 2 groups of 40 rows
SELECT p.sex FROM patients p LEFT JOIN stays s ON s.patient_id = p.patient_id GROUP BY p.sex HAVING count(*) > 100
--> KH107 stays
SELECT p.sex FROM patients p LEFT JOIN stays s ON s.patient_id = p.patient_id WHERE s.age > 3 OR p.sex = 'f' GROUP BY p.sex HAVING count(*) > 100
--> KH107 stays
SELECT p.sex FROM patients p LEFT JOIN stays s ON s.patient_id = p.patient_id WHERE coalesce(s.age, 5) > 3 GROUP BY p.sex HAVING count(*) > 100
--> KH107 stays
SELECT p.sex FROM patients p LEFT JOIN stays s ON s.patient_id = p.patient_id WHERE (s.age > 3) IS NOT TRUE GROUP BY p.sex HAVING count(*) > 100
--> KH107 stays
SELECT p.sex FROM patients p LEFT JOIN stays s ON s.patient_id = p.patient_id GROUP BY p.sex HAVING count(s.cost) > 100 OR count(p.patient_id) > 3
--> KH107 stays
SELECT s.ward FROM stays s FULL JOIN patients p ON p.patient_id = s.patient_id WHERE p.sex = 'f' GROUP BY p.sex HAVING count(*) > 100
--> KH107 patients
