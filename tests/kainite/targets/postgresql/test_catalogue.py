from __future__ import annotations

import sys
from collections.abc import Iterator

import psycopg
import pytest

from kainite.base.errors import CatalogueError, MissingExtraError, SettingsError, TargetUnavailableError
from kainite.uow.catalogue.file import dumps, loads
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, ReferentialAction, TypeFamily, UniqueKey
from kainite.uow.precedence.levels import cycles, graph_of, precedence_map

SCHEMA = """
CREATE SCHEMA sales;
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN very_positive AS positive CHECK (VALUE > 10);
CREATE DOMAIN money_amount AS numeric(12, 2);
CREATE COLLATION folded FROM "C";

CREATE TABLE country (code char(2) PRIMARY KEY, name varchar(80) NOT NULL UNIQUE);
CREATE TABLE customer (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    country char(2) NOT NULL REFERENCES country,
    email text, active boolean NOT NULL DEFAULT true,
    boss bigint REFERENCES customer
);
CREATE UNIQUE INDEX one_active_email ON customer (email) WHERE active;
CREATE UNIQUE INDEX lower_email ON customer (lower(email));
CREATE UNIQUE INDEX email_country ON customer (country, email) INCLUDE (boss);
CREATE TABLE sales.orders (
    customer bigint REFERENCES customer ON DELETE CASCADE, number int, PRIMARY KEY (customer, number),
    UNIQUE (number, customer)
);
CREATE TABLE sales.order_line (
    customer bigint, number int, line smallint, total numeric(12, 2),
    doubled numeric GENERATED ALWAYS AS (total * 2) STORED,
    PRIMARY KEY (line, customer, number),
    CONSTRAINT line_order FOREIGN KEY (number, customer) REFERENCES sales.orders (number, customer)
);
CREATE TABLE shipment (
    id uuid PRIMARY KEY, line smallint, customer bigint, number int, country text REFERENCES country (name),
    FOREIGN KEY (customer, number, line) REFERENCES sales.order_line (customer, number, line)
);
CREATE TABLE hen (id int PRIMARY KEY, egg int);
CREATE TABLE egg (id int PRIMARY KEY, hen int CONSTRAINT egg_hen REFERENCES hen DEFERRABLE);
ALTER TABLE hen ADD CONSTRAINT hen_egg FOREIGN KEY (egg) REFERENCES egg DEFERRABLE INITIALLY DEFERRED;
CREATE TABLE types (
    colour colour, positive very_positive, amount money_amount, at timestamptz, day date, name text COLLATE folded,
    code text UNIQUE, ratio float8, tags text[], period int4range, gone int, EXCLUDE USING gist (period WITH &&)
);
ALTER TABLE types DROP COLUMN gone;
CREATE UNIQUE INDEX folded_code ON types (code COLLATE folded);
CREATE TABLE kainite_applied (id int PRIMARY KEY);
CREATE VIEW customers AS SELECT * FROM customer;
-- The embedded server has no ICU, and only ICU's collations can be declared so.
UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'folded';
"""


@pytest.fixture(scope="module")
def database(postgres_server: str) -> Iterator[str]:
    name = "reflection"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    url = postgres_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(url) as connection:
        connection.execute(SCHEMA)
    yield url
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def found(database: str) -> Catalogue:
    return reflect(database, ["public", "sales"])


def test_tables_are_called_with_their_schema_but_for_the_default_one(found: Catalogue) -> None:
    assert set(found.tables) == {
        "country", "customer", "egg", "hen", "sales.order_line", "sales.orders", "shipment", "types",
    }  # fmt: skip
    assert found.default_schema == "public"
    assert (found.tables["sales.orders"].schema, found.tables["sales.orders"].bare_name) == ("sales", "orders")
    assert (found.tables["country"].schema, found.tables["country"].bare_name) == ("public", "country")
    assert found.find("public.country") is found.tables["country"]


def test_only_the_default_schema_is_read_unless_told(database: str, found: Catalogue) -> None:
    default = reflect(database)
    assert default.tables == {name: table for name, table in found.tables.items() if "." not in name}


def test_columns_have_the_targets_types_in_its_order(found: Catalogue) -> None:
    assert list(found.tables["sales.order_line"].columns.values()) == [
        Column("customer", "bigint", TypeFamily.INTEGER, nullable=False),
        Column("number", "integer", TypeFamily.INTEGER, nullable=False),
        Column("line", "smallint", TypeFamily.INTEGER, nullable=False),
        Column("total", "numeric(12,2)", TypeFamily.NUMERIC),
        Column("doubled", "numeric", TypeFamily.NUMERIC, generated=True),
    ]


def test_types_and_their_families(found: Catalogue) -> None:
    assert {column.name: (column.type, column.family) for column in found.tables["types"].columns.values()} == {
        "colour": ("colour", TypeFamily.TEXT),
        "positive": ("very_positive", TypeFamily.INTEGER),
        "amount": ("money_amount", TypeFamily.OPAQUE),
        "at": ("timestamp with time zone", TypeFamily.OPAQUE),
        "day": ("date", TypeFamily.DATE),
        "name": ("text", TypeFamily.OPAQUE),
        "code": ("text", TypeFamily.TEXT),
        "ratio": ("double precision", TypeFamily.OPAQUE),
        "tags": ("text[]", TypeFamily.OPAQUE),
        "period": ("int4range", TypeFamily.OPAQUE),
    }
    customer = found.tables["customer"].columns
    assert customer["active"] == Column("active", "boolean", TypeFamily.BOOLEAN, nullable=False)
    assert customer["country"].type == "character(2)"
    assert not customer["id"].generated


def test_every_type_is_fit_for_a_cast(found: Catalogue, database: str) -> None:
    with psycopg.connect(database) as connection:
        for table in found.tables.values():
            for column in table.columns.values():
                connection.execute(f"SELECT CAST(NULL AS {column.type})".encode())


def test_primary_keys_keep_their_order(found: Catalogue) -> None:
    assert found.tables["sales.order_line"].primary_key == ("line", "customer", "number")
    assert found.tables["types"].primary_key == ()


def test_unique_constraints_and_indexes(found: Catalogue) -> None:
    assert found.tables["country"].unique_keys == (UniqueKey("country_name_key", ("name",)),)
    assert found.tables["customer"].unique_keys == (
        UniqueKey("email_country", ("country", "email")),
        UniqueKey("lower_email", ()),
        UniqueKey("one_active_email", ()),
    )
    assert found.tables["types"].unique_keys == (
        UniqueKey("folded_code", ()),
        UniqueKey("types_code_key", ("code",)),
        UniqueKey("types_period_excl", ()),
    )


def test_nulls_not_distinct(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        if connection.info.server_version < 150_000:
            pytest.skip("NULLS NOT DISTINCT came with PostgreSQL 15")
        connection.execute("CREATE TABLE t (a int, b int UNIQUE NULLS NOT DISTINCT)")
    assert reflect(postgres).tables["t"].unique_keys == (UniqueKey("t_b_key", ("b",), nulls_distinct=False),)


def test_foreign_keys(found: Catalogue) -> None:
    assert found.tables["customer"].foreign_keys == (
        ForeignKey("customer_boss_fkey", ("boss",), "customer", ("id",)),
        ForeignKey("customer_country_fkey", ("country",), "country", ("code",)),
    )
    assert found.tables["sales.order_line"].foreign_keys == (
        ForeignKey("line_order", ("number", "customer"), "sales.orders", ("number", "customer")),
    )
    assert found.tables["sales.orders"].foreign_keys[0].parent == "customer"
    shipment = {key.parent: key for key in found.tables["shipment"].foreign_keys}
    assert shipment["sales.order_line"].parent_columns == ("customer", "number", "line")
    assert shipment["country"].parent_columns == ("name",)


def test_deferrable_foreign_keys_make_a_cycle_possible(found: Catalogue) -> None:
    assert [key.deferrable for name in ("hen", "egg") for key in found.tables[name].foreign_keys] == [True, True]
    assert cycles(graph_of(found)) == (("egg", "hen"),)


def test_five_levels(found: Catalogue) -> None:
    assert precedence_map(found) == {
        "country": 1,
        "egg": 1,
        "hen": 1,
        "types": 1,
        "customer": 2,
        "sales.orders": 3,
        "sales.order_line": 4,
        "shipment": 5,
    }


def test_a_cycle_that_cannot_be_deferred_is_spelled_out(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute(
            "CREATE TABLE a (id int PRIMARY KEY, b int); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a)"
        )
        connection.execute("ALTER TABLE a ADD CONSTRAINT a_b FOREIGN KEY (b) REFERENCES b")
    with pytest.raises(CatalogueError, match=r"tables (a → b → a|b → a → b) .* DEFERRABLE.* \(a_b, b_a_fkey\)"):
        precedence_map(reflect(postgres))


def test_the_file_keeps_all_of_it(found: Catalogue) -> None:
    assert loads(dumps(found)) == found


def test_what_is_found_does_not_depend_on_the_search_path(database: str, found: Catalogue) -> None:
    moved = reflect(f"{database}&options=-csearch_path%3Dpublic,sales", ["public", "sales"])
    assert moved == found


def test_a_missing_schema_is_named(database: str) -> None:
    with pytest.raises(CatalogueError, match="no schema 'sale'"):
        reflect(database, ["public", "sale"])


def test_an_empty_schema_is_refused(postgres: str) -> None:
    with pytest.raises(CatalogueError, match="no tables in schema public"):
        reflect(postgres)


def test_a_server_that_does_not_answer_is_unavailable_and_the_password_stays_secret() -> None:
    with pytest.raises(TargetUnavailableError) as refused:
        reflect("postgresql://me:secret@127.0.0.1:1/db")
    assert refused.value.retryable
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("url", ["not a url", "oracle://host/db", "postgresql+psycopg2://host/db"])
def test_an_unknown_kind_of_target_is_a_setting_to_mend(url: str) -> None:
    with pytest.raises(SettingsError):
        reflect(url)


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for module in ("catalogue", "connection"):
        monkeypatch.delitem(sys.modules, f"kainite.targets.postgresql.{module}", raising=False)
    with pytest.raises(MissingExtraError, match=r"psycopg.*kainite\[postgresql\]"):
        reflect("postgresql:///db")


def test_a_partitioned_parent_is_referenced_once(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        connection.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9)")
        connection.execute("CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p)")
    tables = reflect(postgres).tables
    assert set(tables) == {"p", "p1", "c"}
    assert [key.parent for key in tables["c"].foreign_keys] == ["p"]
    assert [tables[name].part_of for name in ("p", "p1", "c")] == [None, "p", None]


def test_parts_of_parts_and_heirs_belong_to_the_outermost_table(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute("""
            CREATE SCHEMA old;
            CREATE TABLE p (id int, k int, PRIMARY KEY (id, k)) PARTITION BY RANGE (id);
            CREATE TABLE old.p1 PARTITION OF p FOR VALUES FROM (0) TO (9) PARTITION BY RANGE (k);
            CREATE TABLE p11 PARTITION OF old.p1 FOR VALUES FROM (0) TO (9);
            CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY);
            CREATE TABLE ab () INHERITS (a, b); CREATE TABLE bb () INHERITS (b);
        """)
    parts = {name: table.part_of for name, table in reflect(postgres, ["public", "old"]).tables.items()}
    assert parts == {"p": None, "old.p1": "p", "p11": "p", "a": None, "b": "a", "ab": "a", "bb": "a"}
    assert {name: table.part_of for name, table in reflect(postgres, ["old"]).tables.items()} == {"old.p1": "p"}


def test_what_foreign_keys_do(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute("""
            CREATE TABLE p (id int PRIMARY KEY);
            CREATE TABLE c (id int PRIMARY KEY,
                a int REFERENCES p ON DELETE CASCADE ON UPDATE SET NULL,
                b int REFERENCES p ON DELETE SET DEFAULT ON UPDATE RESTRICT);
        """)
    assert reflect(postgres).tables["c"].foreign_keys == (
        ForeignKey("c_a_fkey", ("a",), "p", ("id",), False, ReferentialAction.CASCADE, ReferentialAction.SET_NULL),
        ForeignKey("c_b_fkey", ("b",), "p", ("id",), False, ReferentialAction.SET_DEFAULT, ReferentialAction.NO_ACTION),
    )


def test_columns_that_are_judged_by_more_than_type_and_keys(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute("""
            CREATE DOMAIN positive AS integer CHECK (value > 0);
            CREATE TABLE plain (id bigint PRIMARY KEY, a integer UNIQUE NOT NULL, b bigint REFERENCES plain);
            CREATE INDEX ON plain (b);
            CREATE TABLE checked (id bigint PRIMARY KEY, a integer, b integer CHECK (b > 0), c positive, d integer,
                                  CHECK (a < id));
            CREATE TABLE row_checked (id bigint PRIMARY KEY, a integer, CHECK (row_checked IS NOT NULL));
            CREATE TABLE computed (id bigint PRIMARY KEY, a integer, b integer GENERATED ALWAYS AS (a + 1) STORED);
            CREATE TABLE expression (id bigint PRIMARY KEY, a integer);
            CREATE INDEX ON expression ((1 / a));
            CREATE TABLE partial (id bigint PRIMARY KEY, a integer);
            CREATE INDEX ON partial (a) WHERE a > 1;
            CREATE TABLE hooked (id bigint PRIMARY KEY, a integer);
            CREATE FUNCTION hook() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
            CREATE TRIGGER hook AFTER UPDATE ON hooked FOR EACH STATEMENT EXECUTE FUNCTION hook();
            CREATE TABLE ruled (id bigint PRIMARY KEY, a integer);
            CREATE RULE nothing AS ON UPDATE TO ruled DO ALSO SELECT 1;
            CREATE TABLE guarded (id bigint PRIMARY KEY, a integer);
            ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
            CREATE TABLE whole (id bigint PRIMARY KEY, a integer) PARTITION BY RANGE (id);
            CREATE TABLE part PARTITION OF whole DEFAULT;
            CREATE TABLE base (id bigint PRIMARY KEY, a integer);
            CREATE TABLE heir () INHERITS (base);
        """)
    judged = {name: table.judged for name, table in reflect(postgres).tables.items()}
    assert {name: columns for name, columns in judged.items() if columns is not None} == {
        "plain": (),
        "hooked": (),
        "ruled": (),
        "checked": ("id", "a", "b", "c"),
        "row_checked": ("id", "a"),
        "heir": (),
    }


def test_columns_that_an_insert_need_not_tell(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute("""
            CREATE DOMAIN one AS integer DEFAULT 1;
            CREATE DOMAIN another AS one;
            CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a integer DEFAULT 1, b integer,
                            s serial, d another, g integer GENERATED ALWAYS AS (a + 1) STORED);
            CREATE TABLE hooked (id bigint PRIMARY KEY);
            CREATE FUNCTION hook() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
            CREATE TRIGGER hook BEFORE INSERT ON hooked FOR EACH ROW EXECUTE FUNCTION hook();
        """)
    tables = reflect(postgres).tables
    assert (tables["t"].defaults, tables["hooked"].defaults) == (("id", "a", "s", "d"), None)
