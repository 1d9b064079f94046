-- # What analysts write about an online shop's invoice lines, customers protected, by the families of docs/asking.md.
-- # numbers
SELECT "Country", COUNT(DISTINCT "CustomerID") AS customers, SUM("Quantity" * "UnitPrice") AS revenue FROM retail WHERE "Quantity" > 0 GROUP BY "Country" HAVING COUNT(DISTINCT "CustomerID") > 10 ORDER BY revenue DESC
--> planned

SELECT r."Country", SUM(r."Quantity") FROM retail AS r GROUP BY r."Country" HAVING SUM(r."Quantity") > 10000
--> planned

-- # key
SELECT DATE_TRUNC('month', "InvoiceDate")::date AS month, COUNT(DISTINCT "CustomerID") AS active FROM retail WHERE "InvoiceDate" >= '2011-01-01' AND "InvoiceDate" < '2011-12-01' GROUP BY month HAVING COUNT(DISTINCT "CustomerID") > 700 ORDER BY month
--> planned

SELECT EXTRACT(HOUR FROM "InvoiceDate")::int AS hour FROM retail GROUP BY 1 HAVING COUNT(DISTINCT "CustomerID") > 500
--> planned

SELECT "InvoiceNo" LIKE 'C%' AS cancelled, "Country" FROM retail GROUP BY 1, 2 HAVING COUNT(*) > 200
--> planned

SELECT "Country" = 'United Kingdom' AS domestic FROM retail GROUP BY "Country" = 'United Kingdom' HAVING COUNT(DISTINCT "CustomerID") > 300
--> planned

SELECT CASE WHEN "UnitPrice" < 1 THEN 'cheap' WHEN "UnitPrice" BETWEEN 1 AND 5 THEN 'medium' ELSE 'expensive' END price_band FROM retail WHERE "UnitPrice" > 0 GROUP BY price_band HAVING SUM("Quantity") > 50000
--> planned

-- # row
SELECT "Country" FROM retail WHERE "Quantity" * "UnitPrice" > 100 GROUP BY "Country" HAVING COUNT(*) > 100
--> planned

SELECT "Country" FROM retail WHERE "Description" ILIKE '%christmas%' AND "InvoiceNo" NOT LIKE 'C%' GROUP BY "Country" HAVING COUNT(DISTINCT "CustomerID") > 20
--> planned

-- # guard
SELECT "Country" FROM retail GROUP BY "Country" HAVING SUM(CASE WHEN "Quantity" < 0 THEN 1 ELSE 0 END)::float / COUNT(*) > 0.02
--> planned

SELECT "Country" FROM retail GROUP BY "Country" HAVING SUM("Quantity" * "UnitPrice") / COUNT(DISTINCT "InvoiceNo") > 300
--> KH204

SELECT "Country" FROM retail GROUP BY "Country" HAVING SUM("Quantity") / COUNT(DISTINCT "CustomerID") > 200
--> planned

-- # rank
SELECT "Country", SUM("Quantity" * "UnitPrice") AS revenue FROM retail GROUP BY "Country" ORDER BY revenue DESC LIMIT 5
--> planned

SELECT month, country FROM (SELECT date_trunc('month', "InvoiceDate") AS month, "Country" AS country, row_number() OVER (PARTITION BY date_trunc('month', "InvoiceDate") ORDER BY count(DISTINCT "CustomerID") DESC) AS rn FROM retail WHERE "InvoiceDate" >= '2011-01-01' AND "InvoiceDate" < '2011-07-01' GROUP BY 1, 2) m WHERE rn <= 3
--> planned

SELECT "StockCode", SUM("Quantity") AS sold FROM retail GROUP BY "StockCode" ORDER BY sold DESC LIMIT 10
--> KH202

-- # text
SELECT "CustomerID", SUM("Quantity" * "UnitPrice") AS total FROM retail GROUP BY "CustomerID" HAVING SUM("Quantity" * "UnitPrice") > 10000 ORDER BY total DESC
--> KH202
