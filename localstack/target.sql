-- The target's tables. Kainite adds two of its own.
CREATE TABLE customer (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customer, total numeric NOT NULL);
