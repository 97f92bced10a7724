CREATE TABLE types (
    i1 tinyint, flag boolean DEFAULT true, i2 smallint, i3 mediumint unsigned, i4 int NOT NULL, i8 bigint unsigned, n decimal(12, 2),
    f float, r double, c char(2), v varchar(80), t text, bin_text varchar(10) COLLATE utf8mb4_bin,
    uca varchar(10) COLLATE utf8mb4_unicode_ci, swedish varchar(10) CHARACTER SET latin1,
    gbk varchar(10) CHARACTER SET gbk COLLATE gbk_bin, b16 binary(16), vb varbinary(9), bl blob, d date, dt datetime(3),
    ts timestamp NULL, tm time, y year, e enum('red', 'green') NOT NULL, s set('a', 'b'), j json, bits bit(3), u uuid,
    ip inet6, g point, "Odd "" ` name" int
);
CREATE TABLE counted (id bigint AUTO_INCREMENT PRIMARY KEY, v varchar(9) NOT NULL DEFAULT 'x', w int DEFAULT NULL);
CREATE TABLE computed (id int PRIMARY KEY, twice int AS (id * 2) VIRTUAL, thrice int AS (id * 3) STORED UNIQUE);
CREATE TABLE touched (id int PRIMARY KEY, at timestamp DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE "Mixed Case" ("Id" int, "group" int, PRIMARY KEY ("group", "Id"));
CREATE TABLE without_key (note text);
CREATE TABLE prefixed (name varchar(40), PRIMARY KEY (name(5)));
CREATE TABLE country (code char(2) PRIMARY KEY, name varchar(80) NOT NULL UNIQUE);
CREATE TABLE customer (
    id bigint PRIMARY KEY, country char(2) NOT NULL REFERENCES country (code), email varchar(90), boss bigint,
    credit int CHECK (credit >= 0), CONSTRAINT boss_is FOREIGN KEY (boss) REFERENCES customer (ID) ON DELETE SET NULL,
    UNIQUE long_email (email(20)), UNIQUE email_country (country, email)
);
CREATE TABLE orders (
    customer bigint REFERENCES customer (id) ON DELETE CASCADE ON UPDATE CASCADE, number int,
    PRIMARY KEY (customer, number), UNIQUE (number, customer)
);
CREATE TABLE parted (id int PRIMARY KEY, a int) PARTITION BY HASH (id) PARTITIONS 3;
CREATE TABLE checked (id int PRIMARY KEY, a int, b int, CHECK (a < B));

-- None of these is a target table.
CREATE TABLE kainite_applied (id int PRIMARY KEY);
CREATE VIEW customers AS SELECT * FROM customer;
