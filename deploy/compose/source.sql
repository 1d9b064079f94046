-- The sample source: the demo's tables, and a schema in which Keyhole may keep copies of rows that count.
-- deploy/compose/load.py runs this as the database's owner, fills the tables and makes the reader's role.
CREATE TABLE sales (
    customer_id integer,
    country text NOT NULL,
    invoice_date timestamp NOT NULL,
    stock_code text NOT NULL,
    quantity integer NOT NULL,
    amount numeric(12, 2) NOT NULL
);
CREATE TABLE countries (name text PRIMARY KEY, region text NOT NULL);
CREATE SCHEMA keyhole_scratch;
REVOKE ALL ON SCHEMA keyhole_scratch FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
